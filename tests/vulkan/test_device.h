// Opens the Vulkan device of the tests (vulkan_name.h).
#pragma once

#include <cstdio>
#include <memory>

#include "vulkan/device.h"
#include "vulkan/vulkan_backend.h"
#include "vulkan_name.h"

namespace aerie::vulkan {

// False: tests that need one are skipped. One that is named is not there unless it can be opened,
// which fails where it cannot.
inline bool has_test_device() {
    return test::is_vulkan_named() || !vulkan_capabilities().empty();
}

// Its place in the loader's list. Throws Error.
inline size_t test_device_index(const Instance& instance) {
    return find_device(instance, test::vulkan_name());
}

// The first test of a program that opens it says which it is.
inline std::unique_ptr<Backend> open_test_device(const DeviceChoices& choices) {
    auto backend = open_vulkan(test::vulkan_name(), choices);
    static const bool said [[maybe_unused]] = [&] {
        const Capabilities& device = backend->capabilities();
        return std::printf("The Vulkan device of these tests: %s, %s\n", device.name.c_str(),
                           device.description.c_str()) > 0;
    }();
    return backend;
}

}  // namespace aerie::vulkan
