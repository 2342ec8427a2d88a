// Op Gated: one unit of the output per invocation.
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

namespace {

const char* shader_of(Activation activation) {
    switch (activation) {
        case Activation::silu:
            return "swiglu";
    }
    return "";
}

}  // namespace

template <>
void VulkanBackend::execute(const Gated& op) {
    const UnitParams params = {units(op.out), stride_words(op.out), stride_words(op.gate_up), 0};
    dispatch({shader_of(op.activation), {quantises(op.out)}}, params,
             {writes(op.out), reads(op.gate_up)},
             {groups(int(params.units), kGroupSize), uint32_t(op.out.rows)},
             20.0 * op.out.rows * op.out.cols);
}

}  // namespace aerie::vulkan
