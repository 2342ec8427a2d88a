// Buffers of the CUDA backend.
#include "cuda/memory.h"

#include <algorithm>
#include <string>

#include "cuda/check.h"

namespace aerie::cuda {

CudaMemory::CudaMemory(size_t size, std::shared_ptr<Queue> queue)
    : queue_(std::move(queue)), born_(queue_->recorded()) {
    queue_->make_current();
    void* data = nullptr;
    const cudaError_t result = cudaMalloc(&data, std::max<size_t>(size, 1));
    if (result == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();  // reported here; the device still works
        throw Error("cuda: out of memory (" + std::to_string(size) + " bytes wanted)",
                    Cause::device_memory);
    }
    CUDA_CHECK(result);
    data_ = static_cast<std::byte*>(data);
    size_bytes = size;
}

CudaMemory::~CudaMemory() {
    queue_->forget_recordings(born_);
    (void)cudaSetDevice(queue_->device());
    (void)cudaFree(data_);  // waits for what still uses it
}

}  // namespace aerie::cuda
