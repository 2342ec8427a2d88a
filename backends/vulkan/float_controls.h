// Execution modes of shaders that say how floats are computed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vulkan/instance.h"

namespace aerie::vulkan {

// The SPIR-V of a shader, with those modes that the device has: denormals are kept, zeros,
// infinities and NaN are what they are, and results are rounded to the nearest, ties to even; and
// f16 is read with its denormals.
// Without them a driver may flush and round as it likes. They are put in here, where the device is
// known: compiling each shader once more for them would double what a build takes.
std::vector<uint32_t> with_float_controls(std::span<const uint32_t> words,
                                          const FloatControls& controls);

}  // namespace aerie::vulkan
