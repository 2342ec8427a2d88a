// Lists and opens the devices that this binary can use. Only this header and CMake name backends.
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
    int threads = 0;                   // CPU only; 0: one per core
    std::filesystem::path cache = {};  // for what a GPU's driver compiles; empty: nothing is kept
    bool profile = false;              // measure each op; slower
    // Reports the progress of long work.
    std::function<void(const std::string&)> on_progress = {};
};

// The capabilities of every device, GPUs first; names are "cpu", "vulkan:0", "cuda:0". A device
// that cannot be used has the reason in `problem`.
std::vector<Capabilities> list_devices();

// A backend without a device here.
struct AbsentBackend {
    std::string title;   // "CUDA"
    std::string reason;  // "there is no NVIDIA driver"; if there is a cure, that too
};
std::vector<AbsentBackend> absent_backends();

// Chooses from `devices`, listed as above, the one to open if none is named: a discrete GPU before
// a virtual one before an integrated one, then the backend that is listed first, then the most
// memory. A device with a problem is never chosen. If nothing is left: "cpu".
std::string best_device(std::span<const Capabilities> devices);

// Opens a device by name. "" means the best one; "vulkan:" may be followed by a part of the
// device's name or by its UUID; "cpu:avx2" and similar names are the CPU with this instruction set.
// Throws Error.
std::unique_ptr<Backend> open_device(const std::string& device, const DeviceOptions& options = {});

}  // namespace aerie
