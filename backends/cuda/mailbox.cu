#include "cuda/mailbox.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cuda/device/view.cuh"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/queue.h"

namespace aerie::cuda {

namespace {

constexpr int kMaxWarps = 8;
constexpr int kLooks = 1000;       // about a microsecond; then the driver is asked
constexpr int kQuestions = 20000;  // some hundredths of a second; then a blocking wait costs little

// Copies rows to the mailbox, one after the other, and then sets its number.
__global__ void send_kernel(View<const int32_t> from, int32_t* to, unsigned* came,
                            unsigned number) {
    for (int i = int(threadIdx.x); i < from.rows * from.cols; i += int(blockDim.x))
        to[i] = from[i / from.cols][i % from.cols];
    __syncthreads();
    if (threadIdx.x > 0) return;
    __threadfence_system();  // the host sees the rows first, then the number
    *static_cast<volatile unsigned*>(came) = number;
}

}  // namespace

Mailbox::Mailbox(std::byte* memory) : memory_(memory) {
    void* mapped = nullptr;
    if (cudaHostGetDevicePointer(&mapped, memory, 0) == cudaSuccess)
        mapped_ = static_cast<std::byte*>(mapped);
    else
        (void)cudaGetLastError();
    std::memset(memory, 0, kWordsAt);
}

bool Mailbox::takes(const Tensor& t) const {
    const bool are_words = unit_elements(t.dtype) == 1 && unit_bytes(t.dtype) == sizeof(int32_t);
    const size_t bytes = size_bytes(t.dtype, size_t(t.cols)) * size_t(t.rows);
    return mapped_ && are_words && bytes > 0 && bytes <= kBytes - kWordsAt;
}

void Mailbox::send(const Tensor& from, Queue& queue) {
    const int warps = std::clamp((from.rows * from.cols + 31) / 32, 1, kMaxWarps);
    launch(send_kernel, {dim3(1), dim3(unsigned(32 * warps)), queue, "read"}, from,
           reinterpret_cast<int32_t*>(mapped_ + kWordsAt), reinterpret_cast<unsigned*>(mapped_),
           ++sent_);
}

bool Mailbox::has_come(cudaStream_t stream) const {
    const auto& came = *reinterpret_cast<const volatile unsigned*>(memory_);
    for (int question = 0; question < kQuestions; ++question) {
        for (int look = 0; look < kLooks; ++look)
            if (came == sent_) return true;
        if (cudaStreamQuery(stream) != cudaErrorNotReady) break;
    }
    return came == sent_;
}

void Mailbox::take(void* to, size_t size_bytes) const {
    std::atomic_thread_fence(std::memory_order_acquire);
    std::memcpy(to, memory_ + kWordsAt, size_bytes);
}

}  // namespace aerie::cuda
