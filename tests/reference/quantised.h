// Products of quantised weights by their definition (core/quant.h): the bits that every device has.
#pragma once

#include "core/dtype.h"
#include "reference/matrix.h"

namespace aerie::reference {

// x * weight^T, x stored as I8G32 and the weight as `type`; `part`: columns of a part of the sum.
Matrix quantised_matmul(const Matrix& x, const Matrix& weight, DType type, int part);

}  // namespace aerie::reference
