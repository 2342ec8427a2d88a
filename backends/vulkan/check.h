// Turns Vulkan's results into Errors of one line.
#pragma once

#include <volk.h>

#include <string>

#include "core/error.h"

namespace aerie::vulkan {

// The result in words: "device lost", "out of device memory", ...
std::string describe(VkResult result);

inline Cause cause_of(VkResult result) {
    return result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY
               ? Cause::device_memory
               : Cause::device_failed;
}

inline void check(const std::string& device, VkResult result, const char* function) {
    if (result != VK_SUCCESS)
        throw Error(device + ": " + describe(result) + " in " + function, cause_of(result));
}

}  // namespace aerie::vulkan

// Calls a function of the device's table; throws Error naming both: "vulkan:0: device lost in
// vkQueueSubmit". The only macro here: it saves writing each name twice.
#define VK_CHECK(device, function, ...) \
    ::aerie::vulkan::check((device).name(), (device).vk.function(__VA_ARGS__), #function)
