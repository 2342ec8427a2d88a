// Turns a failed call of the CUDA runtime into an Error of one line.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "core/error.h"

namespace aerie::cuda {

inline Cause cause_of(cudaError_t result) {
    return result == cudaErrorMemoryAllocation ? Cause::device_memory : Cause::device_failed;
}

inline void check(cudaError_t result, const char* call) {
    if (result == cudaSuccess) return;
    const std::string name(call, std::string(call).find('('));
    throw Error("cuda: " + name + ": " + cudaGetErrorString(result), cause_of(result));
}

}  // namespace aerie::cuda

#define CUDA_CHECK(call) ::aerie::cuda::check(call, #call)
