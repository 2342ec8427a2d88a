// Products of quantised weights by their definition (core/quant.h): the bits that every device has.
#pragma once

#include "core/quant.h"
#include "reference/matrix.h"

namespace aerie::reference {

// x * weight^T, x stored as I8G32 and the weight as `type`; `part`: columns of a part of the sum.
Matrix quantised_matmul(const Matrix& x, const Matrix& weight, DType type, int part);

// The same with a weight of `rows` rows in blocks.
Matrix quantised_matmul(const Matrix& x, const std::vector<BlockQ6_K>& weight, int rows, int part);

}  // namespace aerie::reference
