// Stands in for the launches of backends/cuda: the same calls, run by the execution model.
#pragma once

#include <cuda_runtime.h>

#include "cuda/queue.h"
#include "simt/machine.h"

namespace aerie::cuda {

// A kernel's configuration, and where it was launched.
struct Grid {
    dim3 blocks, threads;
    Queue& queue;
    const char* op;
    simt::Site site;

    Grid(dim3 blocks, dim3 threads, Queue& queue, const char* op, size_t shared_bytes = 0,
         simt::Site site = simt::Site::current())
        : blocks(blocks), threads(threads), queue(queue), op(op), site(site) {}
};

template <class... Parameters, class... Arguments>
void launch_as(void (*kernel)(Parameters...), const Grid& grid, simt::Start start,
               const Arguments&... arguments) {
    grid.queue.launch(grid.op, [&] {
        if (start == simt::Start::beside) ++simt::launched_beside();
        const auto run = [=, g = grid] {
            simt::run(
                g.blocks, g.threads, [&] { kernel(Parameters(arguments)...); }, g.site, start);
        };
        return simt::launch(reinterpret_cast<const void*>(kernel), grid.blocks, grid.threads,
                            grid.queue.stream(), run);
    });
}
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const Grid& grid, const Arguments&... arguments) {
    launch_as(kernel, grid, simt::Start::when_done, arguments...);
}
template <class... Parameters, class... Arguments>
void launch_beside(void (*kernel)(Parameters...), const Grid& grid, const Arguments&... arguments) {
    const bool beside = grid.queue.starts_beside();
    launch_as(kernel, grid, beside ? simt::Start::beside : simt::Start::when_done, arguments...);
}

}  // namespace aerie::cuda
