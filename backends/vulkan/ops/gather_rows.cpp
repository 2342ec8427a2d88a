// Op GatherRows: one element per invocation.
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

template <>
void VulkanBackend::execute(const GatherRows& op) {
    const GatherParams params = {uint32_t(op.out.cols), stride_words(op.out), stride_words(op.x)};
    dispatch({"gather_rows"}, params, {writes(op.out), reads(op.x), reads(op.index)},
             {groups(op.out.cols, kGroupSize), uint32_t(op.out.rows)},
             double(op.out.rows) * op.out.cols);
}

}  // namespace aerie::vulkan
