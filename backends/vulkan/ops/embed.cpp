// Op Embed: one dispatch per part of the table.
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"
#include "vulkan/matmul_kernels.h"
#include "vulkan/weight.h"

namespace aerie::vulkan {

template <>
void VulkanBackend::execute(const Embed& op) {
    for (const auto& [words, segment, matrices] :
         static_cast<const VulkanWeight&>(op.table).parts()) {
        const EmbedParams params = {
            .cols = uint32_t(op.out.cols),
            .out_stride = stride_words(op.out),
            .first_row = uint32_t(segment.first_row),
            .rows = uint32_t(segment.rows),
            .panels = uint32_t(strip_layout(segment.dtype, op.table.cols).panels)};
        dispatch({embed_shader(segment.dtype)}, params,
                 {writes(op.out), reads(words), reads(op.rows.block)},
                 {groups(op.out.cols, kGroupSize), uint32_t(op.out.rows)},
                 double(op.out.rows) * op.out.cols);
    }
}

}  // namespace aerie::vulkan
