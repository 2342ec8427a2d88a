// Reads and copies memory as fast as it allows: 16 bytes per thread, several loads at once.
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/check.h"
#include "cuda/device/packed.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kLoads = 8;  // loads of a thread at once
constexpr size_t kBlockWords = size_t(kThreads) * kLoads;

__global__ void read_kernel(const uint4* from, unsigned* mixed) {
    const uint4* words = from + size_t(blockIdx.x) * kBlockWords + threadIdx.x;
    uint4 word[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) word[i] = words[i * kThreads];
    unsigned bits = 0;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) bits ^= word[i].x ^ word[i].y ^ word[i].z ^ word[i].w;
    if (bits == 0x12345678u) *mixed = bits;  // or the compiler would drop the loads
}

__global__ void copy_words_kernel(uint4* to, const uint4* from) {
    const size_t first = size_t(blockIdx.x) * kBlockWords + threadIdx.x;
    uint4 word[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) word[i] = from[first + size_t(i * kThreads)];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) to[first + size_t(i * kThreads)] = word[i];
}

class CudaMemoryProbe final : public MemoryProbe {
  public:
    CudaMemoryProbe(size_t size_bytes, std::shared_ptr<Queue> queue)
        : half_blocks_(std::max<size_t>(size_bytes / (2 * kBlockWords * sizeof(uint4)), 1)),
          memory_(2 * half_blocks_ * kBlockWords * sizeof(uint4) + sizeof(uint4), queue),
          queue_(*queue) {
        queue_.fill(memory_.data(), 1, memory_.size_bytes);
    }

    size_t size_bytes() const override { return 2 * half_blocks_ * kBlockWords * sizeof(uint4); }

    double read() override {
        unsigned* mixed = reinterpret_cast<unsigned*>(memory_.data() + size_bytes());
        return queue_.seconds_of([&] {
            launch(read_kernel,
                   {dim3(unsigned(2 * half_blocks_)), dim3(kThreads), queue_, "memory_read"},
                   words(), mixed);
        });
    }

    double copy() override {
        return queue_.seconds_of([&] {
            launch(copy_words_kernel,
                   {dim3(unsigned(half_blocks_)), dim3(kThreads), queue_, "memory_copy"},
                   words() + half_blocks_ * kBlockWords, words());
        });
    }

  private:
    uint4* words() const { return reinterpret_cast<uint4*>(memory_.data()); }

    size_t half_blocks_;
    CudaMemory memory_;
    Queue& queue_;
};

}  // namespace

// At most half of the free memory: a model may lie beside it, and grow.
std::unique_ptr<MemoryProbe> CudaBackend::memory_probe(size_t size_bytes) {
    size_t free = 0, total = 0;
    queue_->make_current();
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return std::make_unique<CudaMemoryProbe>(std::min(size_bytes, free / 2), queue_);
}

}  // namespace aerie::cuda
