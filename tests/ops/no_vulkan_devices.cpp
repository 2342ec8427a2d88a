// A build without Vulkan.
#include "ops/device_test.h"

namespace aerie {

std::vector<Device> vulkan_devices() {
    return {{"vulkan", [] { return std::unique_ptr<Backend>(); }}};
}

}  // namespace aerie
