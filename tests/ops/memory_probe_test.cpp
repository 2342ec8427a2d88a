// The yardstick of memory: it moves what it says, at a rate that memory can have.
#include <chrono>

#include "ops/device_test.h"

namespace aerie {
namespace {

using MemoryProbeTest = DeviceTest;

template <class Action>
double least_seconds(const Action& action) {
    using Clock = std::chrono::steady_clock;
    double least = 1e9;
    for (int i = 0; i < 3; ++i) {
        const auto start = Clock::now();
        action();
        least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
    }
    return least;
}

// Were the loops left out because nobody uses their result, they would be far quicker than this.
TEST_P(MemoryProbeTest, ReadsAndCopiesAllOfIt) {
    constexpr size_t kSize = 96 << 20;
    constexpr double kMostBytesPerSecond = 20e12;  // no device has that
    const auto probe = backend_->memory_probe(kSize);
    EXPECT_NEAR(double(probe->size_bytes()), double(kSize), kSize / 16);
    const double least = double(probe->size_bytes()) / kMostBytesPerSecond;
    EXPECT_GT(least_seconds([&] { probe->read(); }), least);
    EXPECT_GT(least_seconds([&] { probe->copy(); }), least);
}

TEST_P(MemoryProbeTest, IsNeverEmpty) {
    const auto probe = backend_->memory_probe(1);
    EXPECT_GE(probe->size_bytes(), 1u);
    probe->read();
    probe->copy();
}

INSTANTIATE_TEST_SUITE_P(Devices, MemoryProbeTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
