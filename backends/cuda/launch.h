// Starting a kernel, with its arguments checked against its parameters.
#pragma once

#include <cuda_runtime.h>

#include "cuda/queue.h"

namespace aerie::cuda {

struct Grid {
    dim3 blocks, threads;
    Queue& queue;
    const char* op;  // as profiles call it
};

// A failure shows in cudaGetLastError, which the next read or sync asks.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const Grid& grid, const Arguments&... arguments) {
    const auto start = [&](Parameters... parameters) {
        void* list[] = {&parameters...};
        (void)cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid.blocks, grid.threads,
                               list, 0, grid.queue.stream());
    };
    grid.queue.launch(grid.op, [&] { start(Parameters(arguments)...); });
}

}  // namespace aerie::cuda
