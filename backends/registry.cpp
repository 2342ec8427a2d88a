// The backends of this build.
#include "backend/registry.h"

#include "core/error.h"
#include "cpu/cpu_backend.h"

namespace aerie {

std::vector<Capabilities> list_devices() {
    return {cpu_capabilities()};
}

std::unique_ptr<Backend> open_device(const std::string& device, const DeviceOptions& options) {
    if (device.empty() || device == "cpu") return open_cpu(options.threads);
    if (device.starts_with("cpu:")) return open_cpu_device(device, options.threads);
    for (const auto& [kind, backend] : {std::pair("vulkan", "Vulkan"), std::pair("cuda", "CUDA")})
        if (device.starts_with(kind))
            throw Error(device + ": this build has no " + backend + " backend; it has cpu");
    std::string known;
    for (const Capabilities& found : list_devices())
        known += (known.empty() ? "" : ", ") + found.name;
    throw Error("no device named " + device + "; there is " + known);
}

}  // namespace aerie
