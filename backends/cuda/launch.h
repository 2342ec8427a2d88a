// Launches kernels, with arguments that are checked against the kernel's parameters.
#pragma once

#include <cuda_runtime.h>

#include "cuda/queue.h"

namespace aerie::cuda {

struct Grid {
    dim3 blocks, threads;
    Queue& queue;
    const char* op;           // its name in profiles and errors
    size_t shared_bytes = 0;  // for launch_shared()
};

// A multiprocessor's memory is divided into shared memory and L1 cache as its kernels prefer, and
// the multiprocessor must be idle to change that. If kernels preferred different divisions, none
// could begin beside another.
inline cudaError_t prefer_shared_memory(const void* function) {
    return cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
                                cudaSharedmemCarveoutMaxShared);
}

inline cudaError_t start(const void* function, const Grid& grid, void** arguments, bool beside) {
    if (grid.queue.is_new(function)) {
        const cudaError_t result = prefer_shared_memory(function);
        if (result != cudaSuccess) return result;
    }
    if (grid.shared_bytes > 0) {  // more than 48 KB has to be asked for
        const cudaError_t result = cudaFuncSetAttribute(
            function, cudaFuncAttributeMaxDynamicSharedMemorySize, int(grid.shared_bytes));
        if (result != cudaSuccess) return result;
    }
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid.blocks;
    config.blockDim = grid.threads;
    config.dynamicSmemBytes = grid.shared_bytes;
    config.stream = grid.queue.stream();
    config.attrs = &early;
    config.numAttrs = beside ? 1 : 0;
    return cudaLaunchKernelExC(&config, function, arguments);
}

template <class... Parameters, class... Arguments>
void launch_as(void (*kernel)(Parameters...), const Grid& grid, bool beside,
               const Arguments&... arguments) {
    const auto with = [&](Parameters... parameters) {
        void* list[] = {&parameters...};
        return start(reinterpret_cast<const void*>(kernel), grid, list, beside);
    };
    grid.queue.launch(grid.op, [&] { return with(Parameters(arguments)...); });
}
// Launches a kernel. A failure is reported by the next read, wait or replay.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const Grid& grid, const Arguments&... arguments) {
    launch_as(kernel, grid, false, arguments...);
}
// The same for a kernel that waits for those before it by itself (wait_for_producers in ptx.cuh):
// if the device can do it, the kernel begins while they run.
template <class... Parameters, class... Arguments>
void launch_beside(void (*kernel)(Parameters...), const Grid& grid, const Arguments&... arguments) {
    launch_as(kernel, grid, grid.queue.starts_beside(), arguments...);
}

}  // namespace aerie::cuda
