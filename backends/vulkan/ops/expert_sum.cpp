// Op ExpertSum: one element per invocation.
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

template <>
void VulkanBackend::execute(const ExpertSum& op) {
    const ExpertSumParams params = {.cols = uint32_t(op.out.cols),
                                    .chosen = uint32_t(op.weights.cols),
                                    .out_stride = stride_words(op.out),
                                    .x_stride = stride_words(op.x),
                                    .weights_stride = stride_words(op.weights),
                                    .accumulate = op.accumulate == Accumulate::yes};
    dispatch({"expert_sum"}, params, {writes(op.out), reads(op.x), reads(op.weights)},
             {groups(op.out.cols, kGroupSize), uint32_t(op.out.rows)},
             double(op.x.rows) * op.x.cols);
}

}  // namespace aerie::vulkan
