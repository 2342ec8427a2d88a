// Devices under test: the CPU with every instruction set, and the GPUs.
#include "backend/registry.h"
#include "ops/device_test.h"

namespace aerie {

namespace {

std::unique_ptr<Backend> open_first_cuda() {
    for (const Capabilities& device : list_devices())
        if (device.name == "cuda:0") return open_device(device.name);
    return nullptr;
}

}  // namespace

std::vector<Device> devices() {
    std::vector<Device> all;
    for (const char* isa : {"portable", "avx2", "avxvnni", "avx512", "amx"})
        all.push_back({std::string("cpu_") + isa, [isa] { return open_cpu_isa(isa, 2); }, 1});
    for (Device& device : vulkan_devices()) all.push_back(std::move(device));
    all.push_back({"cuda", open_first_cuda});
    return all;
}

}  // namespace aerie
