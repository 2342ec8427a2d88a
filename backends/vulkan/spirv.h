// Words of a SPIR-V module (Khronos's specification, section 2.3) that more than one rewriter of
// shaders reads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aerie::vulkan {

inline constexpr size_t kSpirvHeaderWords = 5;  // instructions follow
inline constexpr uint32_t kOpCapability = 17;

}  // namespace aerie::vulkan
