// Products with quantised weights by their definition (core/quant.h), which fixes their bits on
// every device.
#pragma once

#include "core/quant.h"
#include "reference/matrix.h"

namespace aerie::reference {

// A quantised weight: its rows in blocks of one type, as files store them.
struct Blocks {
    DType type;
    int rows, cols;
    std::vector<std::byte> data;

    size_t row_bytes() const { return size_bytes(type, size_t(cols)); }
    const std::byte* row(int index) const { return data.data() + size_t(index) * row_bytes(); }
};
// Quantises `values` to Q8_0 or Q4_0.
Blocks packed_blocks(const Matrix& values, DType type);
// Blocks of random quantised values and integer scales, with float scales of a realistic size.
Blocks random_blocks(DType type, int rows, int cols, unsigned seed);
// Blocks that have all bits of the quantised values and integer scales set, or none.
Blocks extreme_blocks(DType type, int rows, int cols, bool ones);

// x * weight^T with x quantised to I8G32. `part` is the number of columns in one partial sum.
Matrix quantised_matmul(const Matrix& x, const Blocks& weight, int part = kSumPart);

}  // namespace aerie::reference
