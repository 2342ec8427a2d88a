// Entry points of the Vulkan backend, for the registry and the tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace aerie {

namespace vulkan {
struct DeviceChoices;
}

// All devices that the loader reports, including those that cannot run aerie (`problem` says why);
// none without a loader.
std::vector<Capabilities> vulkan_capabilities();

// Why vulkan_capabilities() is empty, and what to do; empty if it is not.
std::string vulkan_absence();

// `device` is "vulkan:1", or "vulkan:" and a part of a device's name or its UUID. Throws Error.
std::unique_ptr<Backend> open_vulkan(const std::string& device,
                                     const vulkan::DeviceChoices& choices);

}  // namespace aerie
