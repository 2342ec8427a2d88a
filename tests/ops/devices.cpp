// Devices under test: the CPU with every instruction set, and the GPUs.
#include <cstdlib>

#include "cpu/cpu_backend.h"
#include "cpu/isa.h"
#include "ops/device_test.h"

namespace aerie {

std::unique_ptr<Backend> open_cpu_isa(const std::string& isa, int threads) {
    bool usable = false;
    for (cpu::Isa candidate : cpu::usable_isas()) usable = usable || cpu::name(candidate) == isa;
    if (!usable) return nullptr;
    setenv("AERIE_CPU_ISA", isa.c_str(), 1);
    auto backend = open_cpu(threads);
    unsetenv("AERIE_CPU_ISA");
    return backend;
}

std::vector<Device> devices() {
    std::vector<Device> all;
    for (const char* isa : {"portable", "avx2", "avx512"})
        all.push_back({std::string("cpu_") + isa, [isa] { return open_cpu_isa(isa, 2); }, 1});
    for (Device& device : vulkan_devices()) all.push_back(std::move(device));
    return all;
}

}  // namespace aerie
