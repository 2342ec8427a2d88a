// Memory of the host that a kernel writes and the host looks at: how few bytes come back, without a
// copy and without a wait for the stream.
#pragma once

#include <cuda_runtime.h>

#include "backend/backend.h"

namespace aerie::cuda {

class Queue;

class Mailbox {
  public:
    static constexpr size_t kBytes = size_t(16) << 10;

    // Of kBytes that are pinned and mapped. Of the current device.
    explicit Mailbox(std::byte* memory);

    bool takes(const Tensor& t) const;
    // Behind what the stream was given. A launch that fails is told by the queue.
    void send(const Tensor& from, Queue& queue);
    // Looks for what was sent. False: the stream has ended, in one way or another, or it takes so
    // long that the caller had better wait for it; what was sent is there once it has ended well.
    bool has_come(cudaStream_t stream) const;
    void take(void* to, size_t size_bytes) const;

  private:
    static constexpr size_t kWordsAt = 64;  // behind the number of what came last

    std::byte* memory_;
    std::byte* mapped_ = nullptr;  // the same, as kernels know it; null: they cannot
    unsigned sent_ = 0;
};

}  // namespace aerie::cuda
