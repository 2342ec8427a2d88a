// The device that is opened if none is named, from lists that no machine here has.
#include "backend/registry.h"

#include <gtest/gtest.h>

namespace aerie {
namespace {

Capabilities device(const std::string& name, DeviceKind kind, size_t gigabytes,
                    const std::string& problem = "") {
    Capabilities caps;
    caps.name = name;
    caps.kind = kind;
    caps.memory_bytes = gigabytes << 30;
    caps.problem = problem;
    return caps;
}

const Capabilities kCpu = device("cpu", DeviceKind::cpu, 64);

std::string best(std::vector<Capabilities> devices) {
    devices.push_back(kCpu);
    return best_device(devices);
}

// An integrated GPU reports most of the machine's memory as its own.
TEST(BestDevice, IsADiscreteGpuBeforeLargerOnes) {
    const auto integrated = device("vulkan:0", DeviceKind::integrated_gpu, 48);
    const auto virtual_one = device("vulkan:1", DeviceKind::virtual_gpu, 32);
    const auto discrete = device("vulkan:2", DeviceKind::discrete_gpu, 8);
    EXPECT_EQ(best({integrated, virtual_one, discrete}), "vulkan:2");
    EXPECT_EQ(best({discrete, virtual_one, integrated}), "vulkan:2");
    EXPECT_EQ(best({integrated, virtual_one}), "vulkan:1");
    EXPECT_EQ(best({integrated}), "vulkan:0");
}

TEST(BestDevice, HasTheMostMemoryOfItsKind) {
    EXPECT_EQ(best({device("vulkan:0", DeviceKind::discrete_gpu, 8),
                    device("vulkan:1", DeviceKind::discrete_gpu, 24),
                    device("vulkan:2", DeviceKind::discrete_gpu, 16)}),
              "vulkan:1");
}

// One card as two backends see it; they may report different amounts of memory.
TEST(BestDevice, IsOfTheFirstBackend) {
    EXPECT_EQ(best({device("cuda:0", DeviceKind::discrete_gpu, 23),
                    device("vulkan:0", DeviceKind::discrete_gpu, 24)}),
              "cuda:0");
    EXPECT_EQ(best({device("cuda:0", DeviceKind::integrated_gpu, 23),
                    device("vulkan:0", DeviceKind::discrete_gpu, 8)}),
              "vulkan:0");
}

TEST(BestDevice, HasNoProblem) {
    EXPECT_EQ(best({device("cuda:0", DeviceKind::discrete_gpu, 24, "no code for it"),
                    device("vulkan:0", DeviceKind::integrated_gpu, 8)}),
              "vulkan:0");
    EXPECT_EQ(best({device("cuda:0", DeviceKind::discrete_gpu, 24, "no code for it")}), "cpu");
}

TEST(BestDevice, IsNoGpuThatACpuPlays) {
    EXPECT_EQ(best({device("vulkan:0", DeviceKind::cpu, 512)}), "cpu");
    EXPECT_EQ(best_device({}), "cpu");
}

}  // namespace
}  // namespace aerie
