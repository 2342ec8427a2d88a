// Weights as the CPU's matmuls read them: see kernels.h.
#pragma once

#include <cstddef>
#include <vector>

#include "backend/backend.h"
#include "core/quant.h"
#include "cpu/kernels.h"

namespace aerie::cpu {

// Whether rows of it are multiplied in strips, else block by block (matmul_blocks.h).
constexpr bool lies_in_strips(DType type) {
    return type != DType::Q6_K;
}
Quant quant_type(DType type);  // asserts that it is Q8_0 or Q4_0

size_t strip_bytes(DType type, int cols);

// Brings rows of any type into strips of one.
class RowPacker {
  public:
    RowPacker(DType as, int cols, const Kernels& kernels);

    // `row` of type `from`, at any alignment, becomes row `lane` of the strip.
    void pack(std::byte* strip, int lane, const std::byte* row, DType from);

  private:
    void read_floats(const std::byte* row, DType from);
    template <class Element>
    void pack_elements(std::byte* strip, int lane);
    template <class Block>
    void pack_groups(std::byte* strip, int lane, const std::byte* row, DType from);

    DType as_;
    const Kernels& kernels_;
    std::vector<float> values_;      // one row
    std::vector<std::byte> packed_;  // the same in the type wanted
};

// Row `lane` of a strip as f32 [cols].
void unpack_row(float* row, const std::byte* strip, DType type, int lane, int cols);

}  // namespace aerie::cpu
