// Picks the kernels by cpuid. __builtin_cpu_supports also asks whether the system saves the state.
#include "cpu/isa.h"

#ifdef AERIE_CPU_X86
#include <cpuid.h>
#endif

#include <cstdlib>
#include <string>

#include "core/error.h"

namespace aerie::cpu {

namespace portable {
extern const Kernels kernels;
}
namespace avx2 {
extern const Kernels kernels;
}
namespace avxvnni {
extern const Kernels kernels;
}
namespace avx512 {
extern const Kernels kernels;
}

namespace {

#ifdef AERIE_CPU_X86
// What __builtin_cpu_supports of some compilers does not know.
bool has_f16c() {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}
bool has_avxvnni() {
    constexpr unsigned kAvxVnni = 1u << 4;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & kAvxVnni);
}
#endif

constexpr Isa kAll[] = {Isa::portable, Isa::avx2, Isa::avxvnni, Isa::avx512};

// Kernels of an instruction set that this build and this CPU have, else null.
const Kernels* usable_kernels(Isa isa) {
    if (isa == Isa::portable) return &portable::kernels;
#ifdef AERIE_CPU_X86
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c())
        return nullptr;
    if (isa == Isa::avx2) return &avx2::kernels;
#ifdef AERIE_CPU_AVXVNNI
    if (isa == Isa::avxvnni && has_avxvnni()) return &avxvnni::kernels;
#endif
    if (isa == Isa::avx512 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni"))
        return &avx512::kernels;
#endif
    return nullptr;
}

}  // namespace

const char* name(Isa isa) {
    switch (isa) {
        case Isa::portable:
            return "portable";
        case Isa::avx2:
            return "avx2";
        case Isa::avxvnni:
            return "avxvnni";
        case Isa::avx512:
            return "avx512";
    }
    return "?";
}

std::vector<Isa> usable_isas() {
    std::vector<Isa> isas;
    for (Isa isa : kAll)
        if (usable_kernels(isa)) isas.push_back(isa);
    return isas;
}

Isa find_isa(const std::string& wanted, const std::string& source) {
    for (Isa isa : kAll) {
        if (wanted != name(isa)) continue;
        if (usable_kernels(isa)) return isa;
        throw Error(source + ": this CPU or build lacks it");
    }
    throw Error(source + ": expected portable, avx2, avxvnni or avx512");
}

Isa choose_isa() {
    const char* wanted = std::getenv("AERIE_CPU_ISA");
    if (!wanted || !*wanted) return usable_isas().back();
    return find_isa(wanted, "AERIE_CPU_ISA=" + std::string(wanted));
}

const Kernels& kernels(Isa isa) {
    const Kernels* kernels = usable_kernels(isa);
    return kernels ? *kernels : portable::kernels;
}

}  // namespace aerie::cpu
