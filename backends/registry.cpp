// The backends of this build.
#include "backend/registry.h"

#include <algorithm>

#include "core/error.h"
#include "cpu/cpu_backend.h"
#ifdef AERIE_CUDA
#include "cuda/cuda_backend.h"
#endif
#ifdef AERIE_VULKAN
#include "vulkan/device.h"
#include "vulkan/vulkan_backend.h"
#endif

namespace aerie {

namespace {

// A kind of device: those there are, and how to open one by its name.
struct Kind {
    std::string prefix, title;
    std::vector<Capabilities> (*list)();
    std::unique_ptr<Backend> (*open)(const std::string& device, const DeviceOptions& options);
};

#ifdef AERIE_CUDA
std::unique_ptr<Backend> open_cuda_device(const std::string& device, const DeviceOptions& options) {
    return open_cuda(device, options.profile);
}
#endif
#ifdef AERIE_VULKAN
std::unique_ptr<Backend> open_vulkan_device(const std::string& device,
                                            const DeviceOptions& options) {
    vulkan::DeviceChoices choices;
    choices.cache = options.cache;
    choices.profile = options.profile;
    choices.on_progress = options.on_progress;
    return open_vulkan(device, choices);
}
#endif

// GPUs first, and of their kinds the quicker one.
std::vector<Kind> kinds() {
    return {
#ifdef AERIE_CUDA
        {"cuda", "CUDA", cuda_capabilities, open_cuda_device},
#else
        {"cuda", "CUDA", nullptr, nullptr},
#endif
#ifdef AERIE_VULKAN
        {"vulkan", "Vulkan", vulkan_capabilities, open_vulkan_device},
#else
        {"vulkan", "Vulkan", nullptr, nullptr},
#endif
        {"cpu", "CPU", [] { return std::vector{cpu_capabilities()}; },
         [](const std::string& device, const DeviceOptions& options) {
             return device == "cpu" ? open_cpu(options.threads)
                                    : open_cpu_device(device, options.threads);
         }},
    };
}

// The largest GPU of the first kind that has one, else the CPU.
std::string best_device() {
    for (const Kind& kind : kinds()) {
        std::string best;
        size_t memory = 0;
        if (!kind.list) continue;
        for (const Capabilities& device : kind.list())
            if (device.is_gpu && device.problem.empty() && device.memory_bytes > memory) {
                best = device.name;
                memory = device.memory_bytes;
            }
        if (!best.empty()) return best;
    }
    return "cpu";
}

}  // namespace

std::vector<Capabilities> list_devices() {
    std::vector<Capabilities> all;
    for (const Kind& kind : kinds())
        if (kind.list)
            for (Capabilities& device : kind.list()) all.push_back(std::move(device));
    return all;
}

std::unique_ptr<Backend> open_device(const std::string& device, const DeviceOptions& options) {
    const std::string wanted = device.empty() ? best_device() : device;
    for (const Kind& kind : kinds()) {
        if (wanted != kind.prefix && !wanted.starts_with(kind.prefix + ":")) continue;
        if (kind.open) return kind.open(wanted, options);
        throw Error(wanted + ": this build has no " + kind.title + " backend");
    }
    std::string known;
    for (const Capabilities& found : list_devices())
        known += (known.empty() ? "" : ", ") + found.name;
    throw Error("no device named " + wanted + "; there is " + known);
}

}  // namespace aerie
