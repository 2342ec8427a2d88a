// Reading and copying as fast as the device can: each invocation takes 16-byte quads side by side.
#include <algorithm>
#include <chrono>

#include "params.h"
#include "vulkan/backend.h"

namespace aerie::vulkan {

namespace {

constexpr int kGroupSize = 64, kQuadsOfOne = 64, kQuadBytes = 16;
constexpr size_t kUnit = size_t(kGroupSize) * kQuadsOfOne * kQuadBytes;
constexpr size_t kMostUnits = 1024;  // of one half: 64 MiB, which every device can bind

}  // namespace

class VulkanMemoryProbe final : public MemoryProbe {
  public:
    VulkanMemoryProbe(VulkanBackend& backend, size_t size_bytes) : backend_(backend) {
        units_ = std::clamp<size_t>(size_bytes / 2 / kUnit, 1, kMostUnits);
        memory_ = backend.allocate(2 * units_ * kUnit + kUnit);
    }

    size_t size_bytes() const override { return 2 * units_ * kUnit; }

    double read() override {
        const Clock::time_point start = Clock::now();
        for (size_t half = 0; half < 2; ++half) launch(true, half);
        backend_.sync();
        return seconds_since(start);
    }
    double copy() override {
        const Clock::time_point start = Clock::now();
        launch(false, 0);
        backend_.sync();
        return seconds_since(start);
    }

  private:
    using Clock = std::chrono::steady_clock;

    static double seconds_since(Clock::time_point start) {
        return std::chrono::duration<double>(Clock::now() - start).count();
    }
    // A reader writes a word a workgroup behind both halves, or nothing need be read.
    void launch(bool read_only, size_t half) {
        const auto view = [&](size_t at, size_t bytes) {
            Tensor t = dense(memory_.get(), DType::I32, 1, int(bytes / 4));
            t.offset_bytes = at;
            return t;
        };
        const size_t bytes = units_ * kUnit;
        backend_.probe(read_only ? view(2 * bytes, units_ * 4) : view(bytes, bytes),
                       view(half * bytes, bytes), read_only, uint32_t(units_));
    }

    VulkanBackend& backend_;
    Buffer memory_;
    size_t units_;
};

void VulkanBackend::probe(Tensor to, Tensor from, bool read_only, uint32_t workgroups) {
    const ProbeParams params = {kQuadsOfOne};
    run({"memory_probe", {read_only}}, params, {writes(to), reads(from)}, {workgroups},
        double(from.cols));
}

std::unique_ptr<MemoryProbe> VulkanBackend::memory_probe(size_t size_bytes) {
    return std::make_unique<VulkanMemoryProbe>(*this, size_bytes);
}

}  // namespace aerie::vulkan
