// Products of matrices in rows by a BLAS of the system, one thread a call. It is loaded when it is
// first needed, so that programs start where there is none.
#pragma once

#include <cstdint>

namespace aerie::cpu {

// Throws Error, saying what to install, if there is no BLAS.
void load_blas();

// c [m, n] = a [m, k] b [k, n] + beta c, where a or b may be stored transposed. load_blas() has
// been called.
void gemm(bool a_is_transposed, bool b_is_transposed, int m, int n, int k, const float* a,
          int64_t a_stride, const float* b, int64_t b_stride, float beta, float* c,
          int64_t c_stride);
void gemm(bool a_is_transposed, bool b_is_transposed, int m, int n, int k, const double* a,
          int64_t a_stride, const double* b, int64_t b_stride, double beta, double* c,
          int64_t c_stride);

}  // namespace aerie::cpu
