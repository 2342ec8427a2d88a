// Vulkan's results as Errors of one line.
#pragma once

#include <volk.h>

#include <string>

#include "core/error.h"

namespace aerie::vulkan {

// What went wrong, in words: "device lost", "out of device memory", ...
std::string describe(VkResult result);

inline void check(VkResult result, const char* what) {
    if (result != VK_SUCCESS)
        throw Error(std::string("vulkan: ") + describe(result) + " in " + what);
}

}  // namespace aerie::vulkan

// Throws Error naming the call. The only macro here: it saves writing each name twice.
#define VK_CHECK(call) ::aerie::vulkan::check(call, #call)
