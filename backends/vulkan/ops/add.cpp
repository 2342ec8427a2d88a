// Op Add: one element per invocation.
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

template <>
void VulkanBackend::execute(const Add& op) {
    const UnitParams params = {units(op.out), stride_words(op.out), stride_words(op.a),
                               stride_words(op.b)};
    dispatch({"add"}, params, {writes(op.out), reads(op.a), reads(op.b)},
             {groups(op.out.cols, kGroupSize), uint32_t(op.out.rows)},
             double(op.out.rows) * op.out.cols);
}

}  // namespace aerie::vulkan
