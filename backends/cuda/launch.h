// Starting a kernel, with its arguments checked against its parameters.
#pragma once

#include <cuda_runtime.h>

#include "cuda/queue.h"

namespace aerie::cuda {

struct Grid {
    dim3 blocks, threads;
    Queue& queue;
    const char* op;  // as profiles and errors call it
};

// A failure is told by the next read, wait or replay.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const Grid& grid, const Arguments&... arguments) {
    const auto start = [&](Parameters... parameters) {
        void* list[] = {&parameters...};
        return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid.blocks, grid.threads,
                                list, 0, grid.queue.stream());
    };
    grid.queue.launch(grid.op, [&] { return start(Parameters(arguments)...); });
}

}  // namespace aerie::cuda
