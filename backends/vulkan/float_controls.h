// Adds execution modes to shaders that say how floats are computed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vulkan/instance.h"

namespace aerie::vulkan {

// Returns the SPIR-V of a shader with the modes that the device supports: denormals are kept;
// signed zeros, infinities and NaN are preserved; results are rounded to nearest, ties to even;
// denormals of f16 are kept where it is read. Without these modes a driver may flush and round as
// it likes. They are added here, when the device is known, because compiling each shader once more
// with them would double the time of a build.
std::vector<uint32_t> with_float_controls(std::span<const uint32_t> words,
                                          const FloatControls& controls);

}  // namespace aerie::vulkan
