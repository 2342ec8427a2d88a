// What the driver says of the build's code.
#include "cuda/code.h"

#include <cuda_runtime.h>

#include "core/error.h"

namespace aerie::cuda {

namespace {

__global__ void empty_kernel() {}

}  // namespace

void check_code(const std::string& device) {
    cudaFuncAttributes attributes;
    const cudaError_t result = cudaFuncGetAttributes(&attributes, empty_kernel);
    if (result == cudaSuccess) return;
    (void)cudaGetLastError();
    throw Error(device + ": this build's code does not run on it (" + cudaGetErrorString(result) +
                "); it is for " + std::string(built_for()));
}

bool kernels_may_begin_early() {
    constexpr int kFirst = 12030;  // of CUDA whose graphs can have such launches
    cudaFuncAttributes attributes;
    int driver = 0;
    return CUDART_VERSION >= kFirst && cudaDriverGetVersion(&driver) == cudaSuccess &&
           driver >= kFirst && cudaFuncGetAttributes(&attributes, empty_kernel) == cudaSuccess &&
           attributes.ptxVersion >= 90;
}

}  // namespace aerie::cuda
