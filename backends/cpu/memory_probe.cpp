// Reads and copies as fast as memory allows: huge pages, several streams per thread, no arithmetic
// that could be the limit.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "cpu/backend.h"

namespace aerie::cpu {

namespace {

constexpr size_t kBlockWords = 1 << 16;  // 512 KiB: what a thread takes at a time
constexpr size_t kStreams = 4;           // streams that a thread reads side by side
constexpr size_t kLanes = 8;             // words of a cache line

uint64_t mix_block(const uint64_t* words) {
    constexpr size_t kStride = kBlockWords / kStreams;
    uint64_t lanes[kLanes] = {};
    for (size_t i = 0; i < kStride; i += kLanes)
        for (size_t stream = 0; stream < kStreams; ++stream)
            for (size_t lane = 0; lane < kLanes; ++lane)
                lanes[lane] ^= words[stream * kStride + i + lane];
    uint64_t mixed = 0;
    for (const uint64_t lane : lanes) mixed ^= lane;
    return mixed;
}

class CpuMemoryProbe final : public MemoryProbe {
  public:
    CpuMemoryProbe(size_t size_bytes, Pool& pool) : pool_(pool) {
        constexpr size_t kUnit = 2 * kBlockWords * sizeof(uint64_t);
        size_bytes_ = std::max(size_bytes / kUnit, size_t(1)) * kUnit;
        memory_ = allocate_pages(size_bytes_);
        words_ = reinterpret_cast<uint64_t*>(memory_.get());
        std::memset(words_, 1, size_bytes_);  // untouched pages would all be one page of zeros
    }

    size_t size_bytes() const override { return size_bytes_; }

    double read() override {
        const Clock::time_point start = Clock::now();
        pool_.run(blocks(), kBlockWords, [&](int first, int last, int) {
            uint64_t mixed = 0;
            for (int i = first; i < last; ++i) mixed ^= mix_block(words_ + size_t(i) * kBlockWords);
            result_.fetch_xor(mixed, std::memory_order_relaxed);  // so that the loads are not
                                                                  // removed
        });
        return seconds_since(start);
    }

    double copy() override {
        const int half = blocks() / 2;
        const Clock::time_point start = Clock::now();
        pool_.run(half, kBlockWords, [&](int first, int last, int) {
            std::memcpy(words_ + size_t(half + first) * kBlockWords,
                        words_ + size_t(first) * kBlockWords,
                        size_t(last - first) * kBlockWords * sizeof(uint64_t));
        });
        return seconds_since(start);
    }

  private:
    using Clock = std::chrono::steady_clock;

    static double seconds_since(Clock::time_point start) {
        return std::chrono::duration<double>(Clock::now() - start).count();
    }
    int blocks() const { return int(size_bytes_ / sizeof(uint64_t) / kBlockWords); }

    Pool& pool_;
    std::shared_ptr<std::byte> memory_;
    uint64_t* words_ = nullptr;  // points into memory_
    size_t size_bytes_ = 0;
    std::atomic<uint64_t> result_{0};
};

}  // namespace

std::unique_ptr<MemoryProbe> CpuBackend::memory_probe(size_t size_bytes) {
    return std::make_unique<CpuMemoryProbe>(size_bytes, pool_);
}

}  // namespace aerie::cpu
