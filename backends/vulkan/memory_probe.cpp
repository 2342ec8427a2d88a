// Reads and copies memory as fast as the device can: neighbouring invocations take neighbouring
// quads of 16 bytes.
#include <algorithm>
#include <chrono>

#include "core/error.h"
#include "params.h"
#include "vulkan/backend.h"

namespace aerie::vulkan {

namespace {

constexpr int kGroupSize = 64, kQuadsOfOne = 64, kBytesOfAQuad = 16;
constexpr size_t kUnit = size_t(kGroupSize) * kQuadsOfOne * kBytesOfAQuad;  // bytes per workgroup
constexpr size_t kMaxUnits = (size_t(1) << 30) / kUnit;                     // workgroups per part
constexpr double kWorkOfWord = 8;  // multiply-adds of a 4-bit matmul per word of memory

}  // namespace

// The memory is in parts, each of which can be allocated and bound. The first half of the parts is
// copied to the second.
class VulkanMemoryProbe final : public MemoryProbe {
  public:
    VulkanMemoryProbe(VulkanBackend& backend, const Traits& traits, size_t size_bytes)
        : backend_(backend) {
        const size_t most = std::min(traits.storage_range, traits.allocation_bytes) / kUnit;
        const size_t pairs = (size_bytes / 2 + kMaxUnits * kUnit - 1) / (kMaxUnits * kUnit);
        units_ = std::clamp<size_t>(size_bytes / 2 / kUnit / std::max<size_t>(pairs, 1), 1,
                                    std::min(most, kMaxUnits));
        const size_t parts = std::max<size_t>(size_bytes / (2 * units_ * kUnit), 1) * 2;
        results_ = backend.allocate(parts * result_bytes());
        allocate_parts(parts);
    }

    size_t size_bytes() const override { return parts_.size() * part_bytes(); }

    double read() override {
        return seconds_of([this] {
            for (size_t i = 0; i < parts_.size(); ++i)
                backend_.probe(view(*results_, i * result_bytes(), units_ * 4), part(i), true,
                               uint32_t(units_), kWorkOfWord);
        });
    }
    double copy() override {
        return seconds_of([this] {
            const size_t half = parts_.size() / 2;
            for (size_t i = 0; i < half; ++i)
                backend_.probe(part(half + i), part(i), false, uint32_t(units_), kWorkOfWord);
        });
    }

  private:
    // Allocates as many parts as there is memory for, in pairs. Throws Error if there is none for
    // two.
    void allocate_parts(size_t count) {
        try {
            while (parts_.size() < count) parts_.push_back(backend_.allocate(part_bytes()));
        } catch (const Error&) {
            if (parts_.size() < 2) throw;
            parts_.resize(parts_.size() / 2 * 2);
        }
        backend_.sync();
    }

    // Measures by the device's clock if it has one.
    template <class Work>
    double seconds_of(const Work& work) {
        using Clock = std::chrono::steady_clock;
        backend_.sync();
        const double before = backend_.queue().busy_seconds();
        const Clock::time_point start = Clock::now();
        work();
        backend_.sync();
        const double waited = std::chrono::duration<double>(Clock::now() - start).count();
        const double busy = backend_.queue().busy_seconds() - before;
        return busy > 0 ? busy : waited;
    }

    static Tensor view(Memory& memory, size_t at, size_t bytes) {
        Tensor t = dense(&memory, DType::I32, 1, int(bytes / 4));
        t.offset_bytes = at;
        return t;
    }
    Tensor part(size_t i) const { return view(*parts_[i], 0, part_bytes()); }
    size_t part_bytes() const { return units_ * kUnit; }
    // Each workgroup that reads also writes a word; otherwise a compiler could remove the loads.
    size_t result_bytes() const { return (units_ * 4 + 255) / 256 * 256; }

    VulkanBackend& backend_;
    size_t units_;
    Buffer results_;
    std::vector<Buffer> parts_;
};

void VulkanBackend::probe(Tensor to, Tensor from, bool read_only, uint32_t workgroups,
                          double work_of_word) {
    const ProbeParams params = {kQuadsOfOne};
    dispatch({"memory_probe", {read_only}}, params, {writes(to), reads(from)}, {workgroups},
             work_of_word * double(from.cols));
}

// A quarter of the memory at most, so that nothing else is evicted from it.
std::unique_ptr<MemoryProbe> VulkanBackend::memory_probe(size_t size_bytes) {
    return std::make_unique<VulkanMemoryProbe>(
        *this, device_->traits(), std::min(size_bytes, device_->traits().memory_bytes / 4));
}

}  // namespace aerie::vulkan
