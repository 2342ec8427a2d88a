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
namespace avx512 {
extern const Kernels kernels;
}

namespace {

#ifdef AERIE_CPU_X86
bool has_f16c() {  // clang 14 does not know it as a feature of __builtin_cpu_supports
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

bool usable(Isa isa) {
    const bool has_avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    switch (isa) {
        case Isa::portable:
            return true;
        case Isa::avx2:
            return has_avx2;
        case Isa::avx512:
            return has_avx2 && __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
    }
    return false;
}
#else
bool usable(Isa isa) {
    return isa == Isa::portable;
}
#endif

constexpr Isa kAll[] = {Isa::portable, Isa::avx2, Isa::avx512};

}  // namespace

const char* name(Isa isa) {
    switch (isa) {
        case Isa::portable:
            return "portable";
        case Isa::avx2:
            return "avx2";
        case Isa::avx512:
            return "avx512";
    }
    return "?";
}

std::vector<Isa> usable_isas() {
    std::vector<Isa> isas;
    for (Isa isa : kAll)
        if (usable(isa)) isas.push_back(isa);
    return isas;
}

Isa find_isa(const std::string& wanted, const std::string& source) {
    for (Isa isa : kAll) {
        if (wanted != name(isa)) continue;
        if (usable(isa)) return isa;
        throw Error(source + ": this CPU or build lacks it");
    }
    throw Error(source + ": expected portable, avx2 or avx512");
}

Isa choose_isa() {
    const char* wanted = std::getenv("AERIE_CPU_ISA");
    if (!wanted || !*wanted) return usable_isas().back();
    return find_isa(wanted, "AERIE_CPU_ISA=" + std::string(wanted));
}

const Kernels& kernels(Isa isa) {
#ifdef AERIE_CPU_X86
    if (isa == Isa::avx2) return avx2::kernels;
    if (isa == Isa::avx512) return avx512::kernels;
#endif
    (void)isa;
    return portable::kernels;
}

}  // namespace aerie::cpu
