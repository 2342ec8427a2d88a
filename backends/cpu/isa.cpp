// Picks the kernels by cpuid. __builtin_cpu_supports also checks that the system saves the
// registers.
#include "cpu/isa.h"

#ifdef AERIE_CPU_X86
#include <cpuid.h>
#endif
#ifdef AERIE_CPU_AMX
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdlib>
#include <string>

#include "core/error.h"
#include "cpu/strip_layout.h"

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
namespace amx {
void pack_columns(const PackTask& task, int first, int last);
void matmul_quant(const QuantMatmulTask& task);
}  // namespace amx

namespace {

#ifdef AERIE_CPU_X86
// The __builtin_cpu_supports of some compilers does not know these.
bool has_f16c() {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}
bool has_avxvnni() {
    constexpr unsigned kAvxVnni = 1u << 4;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & kAvxVnni);
}
bool has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vnni");
}
#endif

#ifdef AERIE_CPU_AMX
// Linux gives a process the state of tiles on request.
bool has_amx() {
    constexpr unsigned kTilesOfBytes = 3u << 24;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || (~edx & kTilesOfBytes)) return false;
    constexpr long kRequestState = 0x1023, kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestState, kTileData) == 0;
}

// Whether tiles are faster than AVX-512; the kernels of AVX-512 do everything else.
bool fills_tiles(DType type, int columns) {
    return columns > 8 && !layout_of(type).in_halves();
}

Kernels amx_kernels() {
    Kernels kernels = avx512::kernels;
    kernels.pack_columns = [](const PackTask& task, int first, int last) {
        (fills_tiles(task.type, task.columns) ? amx::pack_columns : avx512::kernels.pack_columns)(
            task, first, last);
    };
    kernels.matmul_quant = [](const QuantMatmulTask& task) {
        (fills_tiles(task.type, task.columns) ? amx::matmul_quant
                                              : avx512::kernels.matmul_quant)(task);
    };
    return kernels;
}
#endif

constexpr Isa kAll[] = {Isa::portable, Isa::avx2, Isa::avxvnni, Isa::avx512, Isa::amx};

// The kernels of an instruction set; null if this build or this CPU lacks it.
const Kernels* usable_kernels(Isa isa) {
    if (isa == Isa::portable) return &portable::kernels;
#ifdef AERIE_CPU_X86
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c())
        return nullptr;
    if (isa == Isa::avx2) return &avx2::kernels;
#ifdef AERIE_CPU_AVXVNNI
    if (isa == Isa::avxvnni && has_avxvnni()) return &avxvnni::kernels;
#endif
    if (!has_avx512()) return nullptr;
    if (isa == Isa::avx512) return &avx512::kernels;
#ifdef AERIE_CPU_AMX
    static const bool is_amx_here = has_amx();
    static const Kernels with_tiles = amx_kernels();
    if (is_amx_here) return &with_tiles;
#endif
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
        case Isa::amx:
            return "amx";
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
        throw Error(source + ": this CPU or build lacks it", Cause::no_device);
    }
    throw Error(source + ": expected portable, avx2, avxvnni, avx512 or amx", Cause::no_device);
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
