// Op Copy: one unit of the output per invocation.
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

template <>
void VulkanBackend::execute(const Copy& op) {
    const UnitParams params = {units(op.out), stride_words(op.out), stride_words(op.x), 0};
    dispatch({"copy", {quantises(op.out)}}, params, {writes(op.out), reads(op.x)},
             {groups(int(params.units), kGroupSize), uint32_t(op.out.rows)},
             double(op.out.rows) * op.out.cols);
}

}  // namespace aerie::vulkan
