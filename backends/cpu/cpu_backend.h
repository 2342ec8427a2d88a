// Entry points of the CPU backend, for the registry.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace aerie {

Capabilities cpu_capabilities(int threads = 0);

// threads = 0: one per core. The instruction set is the best one, or the one that $AERIE_CPU_ISA
// names (portable, avx2, avxvnni, avx512, amx); throws Error where this CPU lacks it.
std::unique_ptr<Backend> open_cpu(int threads = 0);

// The same with the instruction set that a device name "cpu:portable" names.
std::unique_ptr<Backend> open_cpu_device(const std::string& device, int threads);

}  // namespace aerie
