// Faults at the dispatch table of a device: each function that returns a VkResult can fail at its
// k-th call, and all that is made is counted until it is destroyed.
#pragma once

#include <volk.h>

#include <map>
#include <string>

namespace aerie::vulkan {

struct Fault {
    std::string function;                    // empty: none
    long call = 0;                           // the first that fails
    VkResult result = VK_ERROR_DEVICE_LOST;  // which stays: from then on every function fails
};

// What one device has done. There is one at a time, since Vulkan's functions have no closure.
struct FaultRecord {
    Fault fault;
    bool struck = false;
    std::map<std::string, long> calls;  // by function
    std::map<std::string, long> alive;  // by kind of handle: "Fence", "Buffer", ...
};
FaultRecord& fault_record();

// Replaces the functions of the table. For DeviceChoices::patch.
void patch_with_faults(VolkDeviceTable& vk);

}  // namespace aerie::vulkan
