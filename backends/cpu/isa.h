// The instruction sets of this build, and which of them this CPU has.
#pragma once

#include <string>
#include <vector>

#include "cpu/kernels.h"

namespace aerie::cpu {

enum class Isa { portable, avx2, avxvnni, avx512, amx };

const char* name(Isa isa);  // as in $AERIE_CPU_ISA

// Instruction sets that run here, slowest first; portable always does.
std::vector<Isa> usable_isas();

// The instruction set of this name. Throws Error, naming `source`, if there is none or it cannot
// run.
Isa find_isa(const std::string& wanted, const std::string& source);

// The best instruction set, or the one that $AERIE_CPU_ISA names; throws Error if it cannot run.
Isa choose_isa();

const Kernels& kernels(Isa isa);

}  // namespace aerie::cpu
