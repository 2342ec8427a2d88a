// Opens the Vulkan device of the tests (vulkan_name.h).
#pragma once

#include <cstdio>
#include <memory>

#include "vulkan/device.h"
#include "vulkan/vulkan_backend.h"
#include "vulkan_name.h"

namespace aerie::vulkan {

// If false, tests that need a device are skipped. A device that is named counts as present, so that
// its tests fail if it cannot be opened.
inline bool has_test_device() {
    return test::is_vulkan_named() || !vulkan_capabilities().empty();
}

// The index of the tests' device in the loader's list. Throws Error.
inline size_t test_device_index(const Instance& instance) {
    return find_device(instance, test::vulkan_name());
}

// Opens the tests' device; the first test of a program to do so prints its name.
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
