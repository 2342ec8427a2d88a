// Memory of the host that a kernel writes and the host polls: a few bytes come back without a copy,
// and without a wait for the stream.
#pragma once

#include <cuda_runtime.h>

#include "backend/backend.h"

namespace aerie::cuda {

class Queue;

class Mailbox {
  public:
    static constexpr size_t kBytes = size_t(16) << 10;

    // `memory` is kBytes of the host's, pinned, and mapped for the current device.
    explicit Mailbox(std::byte* memory);

    // Whether a tensor can be sent: its elements have 4 bytes, it is small enough, and the memory
    // is mapped.
    bool takes(const Tensor& t) const;
    // Enqueues a kernel that sends a tensor, for which takes() is true. The queue reports a launch
    // that fails.
    void send(const Tensor& from, Queue& queue);
    // Polls for what was sent. False: the stream has ended without it, or it takes so long that the
    // caller should rather wait for the stream. After a wait that succeeds, what was sent is there.
    bool has_come(cudaStream_t stream) const;
    void take(void* to, size_t size_bytes) const;

  private:
    static constexpr size_t kWordsAt = 64;  // the number of what came last is before

    std::byte* memory_;
    std::byte* mapped_ = nullptr;  // its address on the device; null: it has none
    unsigned sent_ = 0;
};

}  // namespace aerie::cuda
