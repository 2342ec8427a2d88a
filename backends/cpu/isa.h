// Instruction sets of this build, and which of them this CPU has.
#pragma once

#include <string>
#include <vector>

#include "cpu/kernels.h"

namespace aerie::cpu {

enum class Isa { portable, avx2, avxvnni, avx512, amx };

const char* name(Isa isa);  // as in $AERIE_CPU_ISA

// Those that run here, slowest first; portable always does.
std::vector<Isa> usable_isas();

// The one of this name; throws Error, naming `source`, where there is none or it cannot run.
Isa find_isa(const std::string& wanted, const std::string& source);

// The best one, or the one that $AERIE_CPU_ISA names; throws Error where that cannot run.
Isa choose_isa();

const Kernels& kernels(Isa isa);

}  // namespace aerie::cpu
