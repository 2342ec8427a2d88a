// Opens the CPU with an instruction set by name.
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

}  // namespace aerie
