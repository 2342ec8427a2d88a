#include "core/error.h"
#include "train/tested_device.h"
#include "vulkan/test_device.h"
#include "vulkan/training/device.h"

namespace aerie::test {

std::unique_ptr<TrainingDevice> open_tested_device() {
    if (!vulkan::has_test_device()) throw Error("no Vulkan device here");
    return vulkan::open_training(vulkan_name());
}

}  // namespace aerie::test
