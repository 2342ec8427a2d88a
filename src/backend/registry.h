// Which devices this binary can use. The only place (besides CMake) that names backends.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace aerie {

struct DeviceOptions {
    int threads = 0;                   // CPU: 0 means one per core
    std::filesystem::path cache = {};  // folder for what a GPU's driver compiles; empty: not kept
    bool profile = false;              // measure each op; slower
    // Of work that takes long.
    std::function<void(const std::string&)> on_progress = {};
};

// Capabilities of every device, GPUs first; names are "cpu", "vulkan:0", "cuda:0". One that cannot
// be used says why.
std::vector<Capabilities> list_devices();

// Of these, listed as above, the one to open where none is named: a discrete GPU before a virtual
// and an integrated one, then one of the backend that is listed first, then the one with the most
// memory; never one that has a problem. Else "cpu".
std::string best_device(std::span<const Capabilities> devices);

// Opens a device by name ("vulkan:" may be followed by a part of its name or its UUID); "" means
// the best one; "cpu:avx2" and the like are the CPU with that instruction set. Throws Error.
std::unique_ptr<Backend> open_device(const std::string& device, const DeviceOptions& options = {});

}  // namespace aerie
