// Sums over the threads of a warp and of a block, by a fixed tree.
#pragma once

#include <cuda_runtime.h>

#include "cuda/device/shared.cuh"

namespace aerie::cuda {

constexpr int kSumThreads = 256;  // threads of a block that has a row
template <class T>
using BlockSumSpace = SharedArray<T, kSumThreads / 32>;

// All lanes get the sum.
template <class T>
__device__ T sum_of_warp(T x) {
    for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(~0u, x, distance);
    return x;
}

// All of kSumThreads threads call it and get the sum. The space may serve one sum after the other.
template <class T>
__device__ T sum_of_block(T x, BlockSumSpace<T>& space) {
    x = sum_of_warp(x);
    __syncthreads();  // the sum before may still be read
    if (threadIdx.x % 32 == 0) space[int(threadIdx.x) / 32] = x;
    __syncthreads();
    T sum = 0;
    for (int warp = 0; warp < kSumThreads / 32; ++warp) sum += T(space[warp]);
    return sum;
}

}  // namespace aerie::cuda
