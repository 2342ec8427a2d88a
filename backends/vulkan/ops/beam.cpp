// Op Beam: one level of EAGLE-2's expansion (docs/drafting.md section 3), by one workgroup.
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

template <>
void VulkanBackend::execute(const Beam& step) {
    const int width = step.next.count();
    const bool selects = width > 0 && step.selection;
    const BeamParams params = {.rows = uint32_t(step.ids.rows),
                               .k = uint32_t(step.ids.cols),
                               .ids_stride = stride_words(step.ids),
                               .log_probs_stride = stride_words(step.log_probs),
                               .width = uint32_t(width),
                               .table_offset = uint32_t(step.table_offset),
                               .next_slot = uint32_t(step.next_slot),
                               .from_root = step.from_root,
                               .sum_values = step.sum_values,
                               .has_selection = selects};
    // Unused bindings get some other tensor, because every binding that a shader names must be
    // bound.
    const Access unused = reads(step.ids);
    const Access frontier = width > 0 ? writes(step.frontier) : reads(step.frontier);
    dispatch({"beam"}, params,
             {writes(step.table), reads(step.ids), reads(step.log_probs), reads(step.rows.block),
              step.frontier ? frontier : unused, selects ? reads(step.selection) : unused,
              width > 0 ? writes(step.parent_row) : unused,
              width > 0 ? writes(step.next.block) : unused},
             {1}, 8.0 * step.ids.rows * step.ids.cols);
}

}  // namespace aerie::vulkan
