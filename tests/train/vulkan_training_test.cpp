// The Vulkan device that trains, beside its ops: memory, transfers, a device that fails.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "vulkan/fault_table.h"
#include "vulkan/test_device.h"
#include "vulkan/training/device.h"

namespace aerie::test {
namespace {

using vulkan::DeviceChoices;
using vulkan::fault_record;

class VulkanTraining : public testing::Test {
  protected:
    void SetUp() override {
        if (!vulkan::has_test_device()) GTEST_SKIP() << "SKIPPED: no Vulkan device here";
    }

    static std::unique_ptr<TrainingDevice> open(const DeviceChoices& choices = {}) {
        return vulkan::open_training(vulkan_name(), choices);
    }
    static std::unique_ptr<TrainingDevice> open_with(const vulkan::Fault& fault) {
        fault_record() = {.fault = fault, .struck = false, .calls = {}, .alive = {}};
        DeviceChoices choices;
        choices.patch = vulkan::patch_with_faults;
        return open(choices);
    }
    static Matrix waves(TrainingDevice& device, int rows, int cols) {
        std::vector<float> values(size_t(rows) * size_t(cols));
        for (size_t i = 0; i < values.size(); ++i) values[i] = float(std::sin(double(i)));
        const Matrix made = device.allocate(rows, cols);
        device.write(made, std::span<const float>(values));
        return made;
    }
    static std::vector<double> values_of(TrainingDevice& device, const Matrix& m) {
        std::vector<double> values(m.size());
        device.read(m, values);
        return values;
    }
    // Ops with sums in every form; their operands are freed before they have run.
    static std::vector<double> computed(TrainingDevice& device) {
        const Matrix out = device.allocate(70, 64), lse = device.allocate(70, 2);
        {
            const Matrix wide = device.allocate(70, 200), inverse = device.allocate(70, 1);
            device.rms_norm(wide, inverse, waves(device, 70, 200), waves(device, 1, 200), 1e-5);
            const Matrix q = device.allocate(70, 64);
            device.multiply(Product::a_bt, q, wide, waves(device, 64, 200), false);
            const std::vector<int> sequences = {0, 50, 70};
            const Matrix kv[] = {q.col_range(0, 32), q.col_range(32, 32)};
            device.attend(out, lse, q, kv, kv, {2, 1, 32, sequences});
        }
        std::vector<double> found = values_of(device, out);
        found.push_back(device.sum_of_squares(out));
        return found;
    }
};

TEST_F(VulkanTraining, GivesTheSameBitsAgainAndThroughStagingMemory) {
    const auto device = open();
    DeviceChoices choices;
    choices.allow_unified = false;
    const auto staged = open(choices);
    const std::vector<double> once = computed(*device);
    EXPECT_EQ(once, computed(*device));
    EXPECT_EQ(once, computed(*staged));
}

TEST_F(VulkanTraining, MatricesMayOutliveTheirDevice) {
    auto device = open();
    const Matrix m = waves(*device, 3, 3);
    device->fill(m, 1);
    device.reset();
    EXPECT_TRUE(m);
}

TEST_F(VulkanTraining, ALostDeviceIsAnErrorWhenAResultIsWanted) {
    {
        const auto device = open_with({"vkQueueSubmit"});
        try {
            computed(*device);
            FAIL() << "no error";
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find("device lost"), std::string::npos)
                << error.what();
        }
        EXPECT_THROW(device->allocate(1, 1), Error);
    }
    for (const auto& [kind, count] : fault_record().alive) EXPECT_EQ(count, 0) << kind;
}

TEST_F(VulkanTraining, MemoryThatIsNotThereIsAnError) {
    {
        const auto device = open_with({"vkAllocateMemory", 1, VK_ERROR_OUT_OF_DEVICE_MEMORY});
        const Matrix first = waves(*device, 3, 3);
        EXPECT_THROW(device->allocate(3, 3), Error);
        EXPECT_EQ(values_of(*device, first)[0], 0);
    }
    for (const auto& [kind, count] : fault_record().alive) EXPECT_EQ(count, 0) << kind;
}

}  // namespace
}  // namespace aerie::test
