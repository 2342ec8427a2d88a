// Blocks that leave partial results to the last of them.
#pragma once

#include "cuda/device/shared.cuh"

namespace aerie::cuda {

// Whether this block is the last of `blocks` to call this; if so, it sees what the others stored
// before. `arrived` counts the calls and is 0 between launches.
__device__ inline bool is_last_block(unsigned* arrived, unsigned blocks) {
    __shared__ SharedArray<int, 1> is_last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        // In PTX's memory model a thread releases by a fence followed by its atomic; behind the
        // barrier this one is cumulative, so that it releases what the whole block stored.
        __threadfence();
        is_last[0] = atomicInc(arrived, blocks - 1) == blocks - 1;
    }
    __syncthreads();
    if (!is_last[0]) return false;
    __threadfence();
    return true;
}

}  // namespace aerie::cuda
