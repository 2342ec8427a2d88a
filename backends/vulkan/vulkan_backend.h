// What the registry and the tests know of the Vulkan backend.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace aerie {

namespace vulkan {
struct DeviceChoices;
}

// Every device that the loader shows, those that cannot run aerie too; none without a loader.
std::vector<Capabilities> vulkan_capabilities();

// `device` is "vulkan:1", or "vulkan:" and a part of a device's name or its UUID. Throws Error.
std::unique_ptr<Backend> open_vulkan(const std::string& device,
                                     const vulkan::DeviceChoices& choices);

}  // namespace aerie
