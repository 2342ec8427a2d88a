// Packs weights into the strips that the CPU's matmuls read (kernels.h, strip_layout.h), and
// unpacks rows.
#pragma once

#include <cstddef>
#include <vector>

#include "backend/backend.h"
#include "core/quant.h"
#include "cpu/kernels.h"

namespace aerie::cpu {

size_t strip_bytes(DType type, int cols);

// Packs rows of any type into strips of one type.
class RowPacker {
  public:
    RowPacker(DType as, int cols, const Kernels& kernels);

    // `row` of type `from`, at any alignment, becomes row `lane` of the strip.
    void pack(std::byte* strip, int lane, const std::byte* row, DType from);

  private:
    void read_floats(const std::byte* row, DType from);
    void pack_blocks(std::byte* strip, int lane, const std::byte* row, DType from);

    DType as_;
    const Kernels& kernels_;
    std::vector<float> values_;      // one row
    std::vector<std::byte> packed_;  // the same row, in the type of the strip
};

// Row `lane` of a strip as f32 [cols].
void unpack_row(float* row, const std::byte* strip, DType type, int lane, int cols);

}  // namespace aerie::cpu
