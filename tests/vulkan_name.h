// The Vulkan device of the tests: $AERIE_TEST_VULKAN, which holds its number or a part of its name
// or UUID; otherwise the first device.
#pragma once

#include <cstdlib>
#include <string>

namespace aerie::test {

inline bool is_vulkan_named() {
    const char* named = std::getenv("AERIE_TEST_VULKAN");
    return named && *named;
}

// The device in the form that --device takes.
inline std::string vulkan_name() {
    return std::string("vulkan:") + (is_vulkan_named() ? std::getenv("AERIE_TEST_VULKAN") : "0");
}

}  // namespace aerie::test
