// The backends of this build.
#include "backend/registry.h"

#include <charconv>

#include "core/error.h"
#include "cpu/cpu_backend.h"
#ifdef AERIE_CUDA
#include "cuda/cuda_backend.h"
#endif

namespace aerie {

namespace {

// A kind of GPU, whose devices are kind:0, kind:1, ... Without functions: not in this build.
struct GpuKind {
    const char* kind;
    const char* backend;
    std::vector<Capabilities> (*list)() = nullptr;
    std::unique_ptr<Backend> (*open)(int index) = nullptr;
};

// The best ones first.
constexpr GpuKind kGpuKinds[] = {
#ifdef AERIE_CUDA
    {"cuda", "CUDA", cuda_devices, open_cuda},
#else
    {"cuda", "CUDA"},
#endif
    {"vulkan", "Vulkan"},
};

std::unique_ptr<Backend> open_gpu(const GpuKind& gpu, const std::string& device) {
    if (!gpu.open)
        throw Error(device + ": this build has no " + gpu.backend + " backend; `aerie devices`" +
                    " lists what it has");
    const std::string number = device.substr(std::string(gpu.kind).size());
    const char* end = number.data() + number.size();
    int index = -1;
    if (!number.starts_with(":") || std::from_chars(number.data() + 1, end, index).ptr != end ||
        index < 0)
        throw Error(device + ": expected " + gpu.kind + ":N");
    return gpu.open(index);
}

}  // namespace

std::vector<Capabilities> list_devices() {
    std::vector<Capabilities> all;
    for (const GpuKind& gpu : kGpuKinds)
        if (gpu.list)
            for (Capabilities& found : gpu.list()) all.push_back(std::move(found));
    all.push_back(cpu_capabilities());
    return all;
}

std::unique_ptr<Backend> open_device(const std::string& device, const DeviceOptions& options) {
    if (device.empty()) return open_device(list_devices().front().name, options);
    if (device == "cpu") return open_cpu(options.threads);
    for (const GpuKind& gpu : kGpuKinds)
        if (device.starts_with(gpu.kind)) return open_gpu(gpu, device);
    std::string known;
    for (const Capabilities& found : list_devices())
        known += (known.empty() ? "" : ", ") + found.name;
    throw Error("no device named " + device + "; there is " + known);
}

}  // namespace aerie
