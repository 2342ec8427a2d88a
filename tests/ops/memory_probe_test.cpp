// The probe of memory bandwidth moves as many bytes as it says, at a rate that memory can have.

#include "ops/device_test.h"

namespace aerie {
namespace {

using MemoryProbeTest = DeviceTest;

template <class Action>
double least_seconds(const Action& action) {
    double least = 1e9;
    for (int i = 0; i < 3; ++i) least = std::min(least, action());
    return least;
}

// If the compiler removed the loops because their result is unused, they would be far quicker.
TEST_P(MemoryProbeTest, ReadsAndCopiesAllOfIt) {
    constexpr size_t kSize = 96 << 20;
    constexpr double kMaxBytesPerSecond = 20e12;  // more than any device has
    const auto probe = backend_->memory_probe(kSize);
    EXPECT_NEAR(double(probe->size_bytes()), double(kSize), kSize / 16);
    const double least = double(probe->size_bytes()) / kMaxBytesPerSecond;
    EXPECT_GT(least_seconds([&] { return probe->read(); }), least);
    EXPECT_GT(least_seconds([&] { return probe->copy(); }), least);
}

TEST_P(MemoryProbeTest, IsNeverEmpty) {
    const auto probe = backend_->memory_probe(1);
    EXPECT_GE(probe->size_bytes(), 1u);
    EXPECT_GE(probe->read(), 0);
    EXPECT_GE(probe->copy(), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, MemoryProbeTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
