#include "cpu/training/blas.h"

#include <dlfcn.h>

#include "core/error.h"

namespace aerie::cpu {

namespace {

// The C interface of every BLAS; enumerations are ints.
constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;
template <class Real>
using Gemm = void(int order, int transpose_a, int transpose_b, int m, int n, int k, Real alpha,
                  const Real* a, int lda, const Real* b, int ldb, Real beta, Real* c, int ldc);

struct Blas {
    Gemm<float>* single = nullptr;
    Gemm<double>* twice = nullptr;
};

template <class Function>
Function* function_of(void* library, const char* name) {
    return reinterpret_cast<Function*>(::dlsym(library, name));
}

Blas open_blas() {
    for (const char* name : {"libopenblas.so.0", "libblis.so.4", "libcblas.so.3", "libblas.so.3"}) {
        void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!library) continue;
        const Blas found{function_of<Gemm<float>>(library, "cblas_sgemm"),
                         function_of<Gemm<double>>(library, "cblas_dgemm")};
        if (!found.single || !found.twice) continue;
        // OpenBLAS would start threads of its own, beside those that call it.
        if (const auto set = function_of<void(int)>(library, "openblas_set_num_threads")) set(1);
        return found;
    }
    throw Error(
        "training needs a BLAS, such as OpenBLAS (Debian, Ubuntu: apt install libopenblas0)");
}

const Blas& blas() {
    static const Blas loaded = open_blas();
    return loaded;
}

template <class Real>
void call(Gemm<Real>* function, bool a_is_transposed, bool b_is_transposed, int m, int n, int k,
          const Real* a, int64_t a_stride, const Real* b, int64_t b_stride, Real beta, Real* c,
          int64_t c_stride) {
    function(kRowMajor, a_is_transposed ? kTranspose : kNoTranspose,
             b_is_transposed ? kTranspose : kNoTranspose, m, n, k, 1, a, int(a_stride), b,
             int(b_stride), beta, c, int(c_stride));
}

}  // namespace

void load_blas() {
    blas();
}

void gemm(bool a_is_transposed, bool b_is_transposed, int m, int n, int k, const float* a,
          int64_t a_stride, const float* b, int64_t b_stride, float beta, float* c,
          int64_t c_stride) {
    call(blas().single, a_is_transposed, b_is_transposed, m, n, k, a, a_stride, b, b_stride, beta,
         c, c_stride);
}

void gemm(bool a_is_transposed, bool b_is_transposed, int m, int n, int k, const double* a,
          int64_t a_stride, const double* b, int64_t b_stride, double beta, double* c,
          int64_t c_stride) {
    call(blas().twice, a_is_transposed, b_is_transposed, m, n, k, a, a_stride, b, b_stride, beta, c,
         c_stride);
}

}  // namespace aerie::cpu
