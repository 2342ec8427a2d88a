// Injects faults at the dispatch table of a device: each function that returns a VkResult can fail
// at its k-th call. All handles are counted until they are destroyed.
#pragma once

#include <volk.h>

#include <map>
#include <string>

namespace aerie::vulkan {

struct Fault {
    std::string function;                    // empty: none
    long call = 0;                           // number of the first call that fails
    VkResult result = VK_ERROR_DEVICE_LOST;  // a lost device stays lost: all later calls fail
};

// The calls and handles of one device. There is one record at a time, since Vulkan's functions have
// no closure.
struct FaultRecord {
    Fault fault;
    bool struck = false;
    std::map<std::string, long> calls;  // number by function
    std::map<std::string, long> alive;  // number by kind of handle: "Fence", "Buffer", ...
};
FaultRecord& fault_record();

// Replaces the functions of the table. For DeviceChoices::patch.
void patch_with_faults(VolkDeviceTable& vk);

}  // namespace aerie::vulkan
