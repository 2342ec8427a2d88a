// Op HeadNorm: one workgroup per row and head.
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

template <>
void VulkanBackend::execute(const HeadNorm& op) {
    const AttentionShape& shape = op.shape;
    const HeadNormParams params = {.heads = uint32_t(shape.heads),
                                   .head_dim = uint32_t(shape.head_dim),
                                   .qkv_stride = stride_words(op.qkv),
                                   .inverse_dim = 1.0f / float(shape.head_dim),
                                   .epsilon = op.epsilon};
    dispatch({"head_norm"}, params, {writes(op.qkv), reads(op.q_weight), reads(op.k_weight)},
             {uint32_t(shape.heads + shape.kv_heads), uint32_t(op.qkv.rows)},
             2.0 * op.qkv.rows * op.qkv.cols);
}

}  // namespace aerie::vulkan
