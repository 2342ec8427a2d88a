// Op Swiglu: one unit of the output per invocation.
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

template <>
void VulkanBackend::execute(const Swiglu& op) {
    const UnitParams params = {units(op.out), stride_words(op.out), stride_words(op.gate_up), 0};
    dispatch({"swiglu", {quantises(op.out)}}, params, {writes(op.out), reads(op.gate_up)},
             {groups(int(params.units), kGroupSize), uint32_t(op.out.rows)},
             20.0 * op.out.rows * op.out.cols);
}

}  // namespace aerie::vulkan
