// Starting a kernel, with its arguments checked against its parameters.
#pragma once

#include <cuda_runtime.h>

#include "cuda/queue.h"

namespace aerie::cuda {

struct Grid {
    dim3 blocks, threads;
    Queue& queue;
    const char* op;           // as profiles and errors call it
    size_t shared_bytes = 0;  // launch_shared's
};

// A failure is told by the next read, wait or replay.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const Grid& grid, const Arguments&... arguments) {
    const auto start = [&](Parameters... parameters) {
        void* list[] = {&parameters...};
        const void* function = reinterpret_cast<const void*>(kernel);
        if (grid.shared_bytes > 0) {  // a kernel has 48 KB of it for the asking, no more
            const cudaError_t result = cudaFuncSetAttribute(
                function, cudaFuncAttributeMaxDynamicSharedMemorySize, int(grid.shared_bytes));
            if (result != cudaSuccess) return result;
        }
        return cudaLaunchKernel(function, grid.blocks, grid.threads, list, grid.shared_bytes,
                                grid.queue.stream());
    };
    grid.queue.launch(grid.op, [&] { return start(Parameters(arguments)...); });
}

}  // namespace aerie::cuda
