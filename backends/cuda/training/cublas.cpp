#include "cuda/training/cublas.h"

#include <dlfcn.h>

#include <string>
#include <utility>

#include "core/error.h"
#include "cuda/training/cuda_training.h"

namespace aerie::cuda {

namespace {

// The C interface of cuBLAS; enumerations and the status are ints, and 0 is success.
using Handle = struct cublasContext*;
constexpr int kNoTranspose = 0, kTranspose = 1;

struct Library {
    int (*create)(Handle*) = nullptr;
    int (*destroy)(Handle) = nullptr;
    int (*set_stream)(Handle, cudaStream_t) = nullptr;
    int (*gemm)(Handle, int transpose_a, int transpose_b, int m, int n, int k, const float* alpha,
                const float* a, int lda, const float* b, int ldb, const float* beta, float* c,
                int ldc) = nullptr;
    const char* (*name_of)(int status) = nullptr;
};

template <class Function>
bool load(Function*& function, void* library, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    return function != nullptr;
}

// Empty if there is no cuBLAS.
Library load_library() {
    for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"}) {
        void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
        Library found;
        if (library && load(found.create, library, "cublasCreate_v2") &&
            load(found.destroy, library, "cublasDestroy_v2") &&
            load(found.set_stream, library, "cublasSetStream_v2") &&
            load(found.gemm, library, "cublasSgemm_v2") &&
            load(found.name_of, library, "cublasGetStatusString"))
            return found;
    }
    return {};
}

// The default mode of mathematics is f32 throughout, and without atomics one stream's calls give
// the same bits each time; both are cuBLAS's defaults.
class LoadedCublas final : public Cublas {
  public:
    LoadedCublas(const Library& library, std::shared_ptr<Queue> queue)
        : library_(library), queue_(std::move(queue)) {
        queue_->make_current();
        check(library_.create(&handle_), "cublasCreate");
        const int status = library_.set_stream(handle_, queue_->stream());
        if (status != 0) (void)library_.destroy(handle_);
        check(status, "cublasSetStream");
    }
    ~LoadedCublas() override {
        (void)cudaSetDevice(queue_->device());
        (void)library_.destroy(handle_);
    }
    LoadedCublas(const LoadedCublas&) = delete;
    LoadedCublas& operator=(const LoadedCublas&) = delete;

    // cuBLAS has matrices in columns. A matrix in rows is its own transpose in columns, and out^T =
    // b^T a^T, so the operands change places and keep their transpositions.
    void multiply(Product form, const Matrix& out, const Matrix& a, const Matrix& b, int inner,
                  bool accumulate) override {
        const float alpha = 1, beta = accumulate ? 1 : 0;
        queue_->launch("multiply", [&] {
            const int status =
                library_.gemm(handle_, form == Product::a_bt ? kTranspose : kNoTranspose,
                              form == Product::at_b ? kTranspose : kNoTranspose, out.cols, out.rows,
                              inner, &alpha, elements_of(b), int(b.stride), elements_of(a),
                              int(a.stride), &beta, elements_of(out), int(out.stride));
            if (status != 0) queue_->refuse("multiply", library_.name_of(status));
            return cudaSuccess;
        });
    }

  private:
    void check(int status, const char* call) const {
        if (status != 0)
            throw Error(std::string("cuda: ") + call + ": " + library_.name_of(status));
    }

    Library library_;
    std::shared_ptr<Queue> queue_;
    Handle handle_ = nullptr;
};

}  // namespace

std::unique_ptr<Cublas> open_cublas(std::shared_ptr<Queue> queue) {
    const Library library = load_library();
    if (!library.gemm) return nullptr;
    return std::make_unique<LoadedCublas>(library, std::move(queue));
}

}  // namespace aerie::cuda
