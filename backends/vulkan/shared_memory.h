// How invocations of a workgroup see what others write to its shared memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace aerie::vulkan {

// The SPIR-V of a shader, with its shared memory ordered by barriers alone. Where cooperative
// matrices bring Vulkan's memory model along, glslang makes every access to it visible or available
// by itself, and drivers wait for each before the next: on AMD's, a round trip a load. Here that is
// taken off the accesses and put on the barriers, between which no invocation of our shaders reads
// what another writes. Modules of the older memory model stay as they are.
std::vector<uint32_t> ordered_by_barriers(std::span<const uint32_t> words);

}  // namespace aerie::vulkan
