// Which devices this binary can use. The only place (besides CMake) that names backends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace aerie {

struct DeviceOptions {
    int threads = 0;  // CPU: 0 means one per core
};

// Capabilities of every usable device, best first; names are "cpu", "vulkan:0", "cuda:0".
std::vector<Capabilities> list_devices();

// Opens a device by name; "" means the best GPU, else the CPU; "cpu:portable", "cpu:avx2" and
// "cpu:avx512" are the CPU with that instruction set. Throws Error.
std::unique_ptr<Backend> open_device(const std::string& device, const DeviceOptions& options = {});

}  // namespace aerie
