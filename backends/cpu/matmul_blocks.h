// Matmuls of types that have no strips: row by row, block by block, with the bits of core/quant.h.
#pragma once

#include "backend/backend.h"
#include "cpu/kernels.h"

namespace aerie::cpu {

// x I8G32 [columns, inner] times a row of `inner` elements in blocks of `type`; one output of each
// column, `output` being of that row.
void multiply_block_row(const Tensor& x, const std::byte* row, DType type,
                        const MatmulOutput& output);

}  // namespace aerie::cpu
