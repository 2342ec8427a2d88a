// Device memory, and where the rows of a tensor lie in it.
#pragma once

#include <cuda_runtime.h>

#include "backend/backend.h"
#include "cuda/queue.h"

namespace aerie::cuda {

class CudaMemory final : public Memory {
  public:
    // On the queue's device, not zeroed. Throws Error.
    CudaMemory(size_t size, std::shared_ptr<Queue> queue);
    ~CudaMemory() override;
    CudaMemory(const CudaMemory&) = delete;
    CudaMemory& operator=(const CudaMemory&) = delete;

    std::byte* data() const { return data_; }

  private:
    std::byte* data_ = nullptr;
    std::shared_ptr<Queue> queue_;
    long born_;  // recordings made by then, which cannot use this memory
};

// The device address of a row of a tensor.
template <class T>
T* row(const Tensor& t, int index) {
    std::byte* data = static_cast<CudaMemory*>(t.memory)->data() + t.offset_bytes;
    return reinterpret_cast<T*>(data + size_t(index) * size_bytes(t.dtype, size_t(t.row_stride)));
}

}  // namespace aerie::cuda
