// Products of matrices in rows by the BLAS of the system, one thread a call.
#pragma once

#include <cblas.h>

#include <cstdint>

// OpenBLAS would start threads of its own; other libraries lack the function.
extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace aerie::cpu {

inline void use_one_blas_thread() {
    if (openblas_set_num_threads) openblas_set_num_threads(1);
}

// c [m, n] = a [m, k] b [k, n] + beta c, where a or b may be stored transposed.
inline void gemm(bool a_is_transposed, bool b_is_transposed, int m, int n, int k, const float* a,
                 int64_t a_stride, const float* b, int64_t b_stride, float beta, float* c,
                 int64_t c_stride) {
    cblas_sgemm(CblasRowMajor, a_is_transposed ? CblasTrans : CblasNoTrans,
                b_is_transposed ? CblasTrans : CblasNoTrans, m, n, k, 1, a, int(a_stride), b,
                int(b_stride), beta, c, int(c_stride));
}
inline void gemm(bool a_is_transposed, bool b_is_transposed, int m, int n, int k, const double* a,
                 int64_t a_stride, const double* b, int64_t b_stride, double beta, double* c,
                 int64_t c_stride) {
    cblas_dgemm(CblasRowMajor, a_is_transposed ? CblasTrans : CblasNoTrans,
                b_is_transposed ? CblasTrans : CblasNoTrans, m, n, k, 1, a, int(a_stride), b,
                int(b_stride), beta, c, int(c_stride));
}

}  // namespace aerie::cpu
