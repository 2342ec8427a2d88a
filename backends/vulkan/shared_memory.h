// Rewrites shaders so that barriers alone order accesses to a workgroup's shared memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace aerie::vulkan {

// Returns the SPIR-V of a shader, with its shared memory ordered by barriers alone. Cooperative
// matrices require Vulkan's memory model, under which glslang marks every access to shared memory
// as making data available or visible, and drivers wait for each access before the next: on AMD's,
// a round trip per load. This function moves these marks from the accesses to the barriers. It may
// do so because between two barriers no invocation of our shaders reads what another one writes.
// Modules of the older memory model are returned as they are.
std::vector<uint32_t> ordered_by_barriers(std::span<const uint32_t> words);

}  // namespace aerie::vulkan
