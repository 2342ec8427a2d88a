// Op RopeAppend: four elements of a row per invocation.
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

template <>
void VulkanBackend::execute(const RopeAppend& op) {
    const RopeParams params = {.heads = uint32_t(op.shape.heads),
                               .kv_heads = uint32_t(op.shape.kv_heads),
                               .head_dim = uint32_t(op.shape.head_dim),
                               .qkv_stride = stride_words(op.qkv),
                               .rope_stride = stride_words(op.rope),
                               .k_stride = stride_words(op.kv.k),
                               .v_stride = stride_words(op.kv.v),
                               .pages_stride = stride_words(op.kv.page_table)};
    dispatch({"rope_append", {op.kv.k.dtype == DType::F16}}, params,
             {writes(op.qkv), reads(op.rope), reads(op.rows.block), reads(op.kv.page_table),
              writes(op.kv.k), writes(op.kv.v)},
             {groups(op.qkv.cols / 4, kGroupSize), uint32_t(op.qkv.rows)},
             4.0 * op.qkv.rows * op.qkv.cols);
}

}  // namespace aerie::vulkan
