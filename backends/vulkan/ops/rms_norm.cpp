// A workgroup a row.
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

template <>
void VulkanBackend::execute(const RmsNorm& op) {
    const NormParams params = {.cols = uint32_t(op.x.cols),
                               .units = units(op.out),
                               .out_stride = stride_words(op.out),
                               .x_stride = stride_words(op.x),
                               .inverse_cols = 1.0f / float(op.x.cols),
                               .epsilon = op.epsilon};
    dispatch({"rms_norm", {quantises(op.out)}}, params,
             {writes(op.out), reads(op.x), reads(op.weight)}, {uint32_t(op.x.rows)},
             2.0 * op.x.rows * op.x.cols);
}

}  // namespace aerie::vulkan
