// The devices of a test program: the CPU, and as cuda:0 the execution model.
#include "backend/registry.h"

#include "core/error.h"
#include "cpu/cpu_backend.h"
#include "cuda/cuda_backend.h"

namespace aerie {

std::vector<Capabilities> list_devices() {
    return {cuda_capabilities().front(), cpu_capabilities()};
}

std::unique_ptr<Backend> open_device(const std::string& device, const DeviceOptions& options) {
    return device == "cpu" ? open_cpu(options.threads) : open_cuda(device);
}

}  // namespace aerie
