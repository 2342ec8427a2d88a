// Products of quantised weights by their definition (core/quant.h): the bits that every device has.
#pragma once

#include "core/quant.h"
#include "reference/matrix.h"

namespace aerie::reference {

// Rows of a weight in blocks of a type, as files have them.
struct Blocks {
    DType type;
    int rows, cols;
    std::vector<std::byte> data;

    size_t row_bytes() const { return size_bytes(type, size_t(cols)); }
    const std::byte* row(int index) const { return data.data() + size_t(index) * row_bytes(); }
};
// Values packed into Q8_0 or Q4_0.
Blocks packed_blocks(const Matrix& values, DType type);
// Any steps and whole scales, and scales that a model may have.
Blocks random_blocks(DType type, int rows, int cols, unsigned seed);
// Every bit of steps and whole scales the same.
Blocks extreme_blocks(DType type, int rows, int cols, bool ones);

// x * weight^T, x stored as I8G32; `part`: columns of a part of the sum.
Matrix quantised_matmul(const Matrix& x, const Blocks& weight, int part = kSumPart);

}  // namespace aerie::reference
