// The ops of a transformer layer as plain double-precision loops.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "reference/matrix.h"

namespace aerie::reference {

Exact matmul(const Matrix& x, const Matrix& weight);  // x * weight^T
Exact rms_norm(const Matrix& x, const Matrix& weight, double epsilon);
Exact swiglu(const Matrix& gate_up);

// RoPE: element i of every head is rotated together with element i + head_dim / 2.
Exact rope(const Matrix& qkv, const Matrix& table, const std::vector<int>& positions,
           const AttentionShape& shape);

// Attention of one row q [heads * head_dim] over keys and values [positions, kv_heads * head_dim]
// in logical order; the last position is the row's own. With a window, only that many of the last
// positions count.
std::vector<double> attention(const float* q, const Matrix& keys, const Matrix& values,
                              const AttentionShape& shape, double scale, int window = 0);

}  // namespace aerie::reference
