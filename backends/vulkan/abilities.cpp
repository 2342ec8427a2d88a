// Decides which of a device's reported features are used.
#include "vulkan/abilities.h"

#include <algorithm>

#include "core/quant.h"

namespace aerie::vulkan {

namespace {

// Invocations that share an output row on GPUs, which need many invocations to be busy.
constexpr int kGpuSplit = 8;

}  // namespace

Abilities::Abilities(Traits traits, const Matrices& matrices, bool allow_integer_dot, int split)
    : traits_(std::move(traits)),
      matrices_(matrices),
      integer_dot_(traits_.integer_dot && allow_integer_dot),
      split_(split                                         ? split
             : traits_.type == VK_PHYSICAL_DEVICE_TYPE_CPU ? 1
                                                           : kGpuSplit) {}

MatrixShape Abilities::matrix_shape(DType weight) const {
    return weight == DType::F16   ? matrices_.f16
           : is_quantised(weight) ? matrices_.s8
                                  : MatrixShape();
}

// On a driver that runs shaders on a CPU, a load from one address by all invocations costs a load
// for each of them, so invocations load different words and broadcast them. llvmpipe runs at most
// 16 invocations side by side, whatever subgroup size it reports.
uint32_t Abilities::fetch_lanes() const {
    const uint32_t lanes = std::min(traits_.subgroup_size, 16u);
    const bool able = traits_.subgroup_broadcast && integer_dot_ && split_ == 1 && lanes >= 4;
    return able && traits_.type == VK_PHYSICAL_DEVICE_TYPE_CPU ? lanes : 0;
}

// Drivers that run on a CPU take longer for the instruction than for integer code.
bool Abilities::reads_halves() const {
    return traits_.float_controls.halves && traits_.type != VK_PHYSICAL_DEVICE_TYPE_CPU;
}

}  // namespace aerie::vulkan
