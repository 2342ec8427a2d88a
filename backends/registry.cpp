// Lists the backends of this build, opens their devices and chooses the default one.
#include "backend/registry.h"

#include <algorithm>

#include "core/ascii.h"
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

// A backend: the prefix of its device names, its title, and functions that list its devices, say
// why there is none, and open one by name. If this build lacks the backend they are null, and
// `needs` says what a build with it needs.
struct Kind {
    std::string prefix, title, needs;
    std::vector<Capabilities> (*list)();
    std::string (*absence)();
    std::unique_ptr<Backend> (*open)(const std::string& device, const DeviceOptions& options);
};

#ifdef AERIE_CUDA
std::unique_ptr<Backend> open_cuda_device(const std::string& device, const DeviceOptions& options) {
    return open_cuda(device, options.profile, options.on_progress);
}
#endif
#ifdef AERIE_VULKAN
std::unique_ptr<Backend> open_vulkan_device(const std::string& device,
                                            const DeviceOptions& options) {
    vulkan::DeviceChoices choices;
    choices.cache = options.cache.string();
    choices.profile = options.profile;
    choices.on_progress = options.on_progress;
    return open_vulkan(device, choices);
}
#endif

// GPU backends come first, CUDA before Vulkan: where both see a GPU of the same kind, best_device()
// takes the first, which is faster.
std::vector<Kind> kinds() {
    return {
#ifdef AERIE_CUDA
        {"cuda", "CUDA", "", cuda_capabilities, cuda_absence, open_cuda_device},
#else
        {"cuda", "CUDA", "nvcc, of the CUDA toolkit", nullptr, nullptr, nullptr},
#endif
#ifdef AERIE_VULKAN
        {"vulkan", "Vulkan", "", vulkan_capabilities, vulkan_absence, open_vulkan_device},
#else
        {"vulkan", "Vulkan", "libvulkan-dev, libvulkan-volk-dev and glslang-tools", nullptr,
         nullptr, nullptr},
#endif
        {"cpu", "CPU", "", [] { return std::vector{cpu_capabilities()}; },
         [] { return std::string(); },
         [](const std::string& device, const DeviceOptions& options) {
             return device == "cpu" ? open_cpu(options.threads)
                                    : open_cpu_device(device, options.threads);
         }},
    };
}

std::string_view backend_of(const Capabilities& device) {
    return std::string_view(device.name).substr(0, device.name.find(':'));
}

// Memory sizes are compared only within a backend, because two backends may report the same device
// with different sizes.
bool is_better(const Capabilities& a, const Capabilities& b) {
    if (a.kind != b.kind) return a.kind > b.kind;
    return backend_of(a) == backend_of(b) && a.memory_bytes > b.memory_bytes;
}

}  // namespace

std::string best_device(std::span<const Capabilities> devices) {
    const Capabilities* best = nullptr;
    for (const Capabilities& device : devices)
        if (device.kind != DeviceKind::cpu && device.problem.empty() &&
            (!best || is_better(device, *best)))
            best = &device;
    return best ? best->name : "cpu";
}

std::vector<Capabilities> list_devices() {
    std::vector<Capabilities> all;
    for (const Kind& kind : kinds())
        if (kind.list)
            for (Capabilities& device : kind.list()) all.push_back(std::move(device));
    return all;
}

std::vector<AbsentBackend> absent_backends() {
    std::vector<AbsentBackend> absent;
    for (const Kind& kind : kinds()) {
        const std::string reason =
            kind.list ? kind.absence()
                      : "this build is without it (to build it: " + kind.needs + ")";
        if (!reason.empty()) absent.push_back({kind.title, reason});
    }
    return absent;
}

std::unique_ptr<Backend> open_device(const std::string& device, const DeviceOptions& options) {
    const std::string wanted = device.empty() ? best_device(list_devices()) : lower_ascii(device);
    for (const Kind& kind : kinds()) {
        if (wanted != kind.prefix && !wanted.starts_with(kind.prefix + ":")) continue;
        if (kind.open) return kind.open(wanted, options);
        throw Error(wanted + ": this build has no " + kind.title + " backend", Cause::no_device);
    }
    std::string known;
    for (const Capabilities& found : list_devices())
        known += (known.empty() ? "" : ", ") + found.name;
    throw Error("no device named " + wanted + "; there is " + known, Cause::no_device);
}

}  // namespace aerie
