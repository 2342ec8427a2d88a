// Quantised weights as the CPU's kernels read them: see Quant in kernels.h.
#pragma once

#include <cstddef>

#include "core/quant.h"
#include "cpu/kernels.h"

namespace aerie::cpu {

Quant quant_type(DType type);  // asserts that it is Q8_0 or Q4_0

constexpr size_t strip_bytes(Quant type, int inner) {
    return size_t(inner / kPanelElements) * panel_bytes(type);
}

// Row `lane` of a strip from its groups, and back.
void put_row(std::byte* strip, int lane, const BlockQ8_0* row, int groups);
void put_row(std::byte* strip, int lane, const BlockQ4_0* row, int groups);
void unpack_row(float* row, const std::byte* strip, Quant type, int lane, int groups);

}  // namespace aerie::cpu
