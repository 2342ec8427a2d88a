// Asks the driver about the build's code.
#include "cuda/code.h"

#include <cuda_runtime.h>

#include <cstdlib>

#include "core/error.h"

namespace aerie::cuda {

namespace {

__global__ void empty_kernel() {}

bool early_launch_is_wanted() {
    const char* value = std::getenv("AERIE_CUDA_EARLY_LAUNCH");
    const std::string_view wanted = value ? value : "";
    if (!wanted.empty() && wanted != "0" && wanted != "1")
        throw Error(
            "AERIE_CUDA_EARLY_LAUNCH=" + std::string(wanted) +
            ": expected 0, by which no kernel begins before the one before it has ended, or 1");
    return wanted != "0";
}

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
    constexpr int kFirst = 12030;  // the first CUDA with such launches in graphs
    if (!early_launch_is_wanted()) return false;
    cudaFuncAttributes attributes;
    int driver = 0;
    return CUDART_VERSION >= kFirst && cudaDriverGetVersion(&driver) == cudaSuccess &&
           driver >= kFirst && cudaFuncGetAttributes(&attributes, empty_kernel) == cudaSuccess &&
           attributes.ptxVersion >= 90;
}

}  // namespace aerie::cuda
