// Op RmsNorm: one workgroup per row. If all consumers take x as pairs of f16, the output has that
// form.
#include <algorithm>

#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"
#include "vulkan/matmul_kernels.h"
#include "vulkan/weight.h"

namespace aerie::vulkan {

namespace {

NormParams params_of(const RmsNorm& op) {
    return {.cols = uint32_t(op.x.cols),
            .units = 0,
            .out_stride = 0,
            .x_stride = stride_words(op.x),
            .inverse_cols = 1.0f / float(op.x.cols),
            .epsilon = op.epsilon};
}

bool reads_halves(const Device& device, const Weight& weight) {
    return std::ranges::all_of(
        static_cast<const VulkanWeight&>(weight).parts(),
        [&](const WeightPart& part) { return takes_halves(device, part.segment.dtype); });
}

}  // namespace

// A single row is normalised by each workgroup of the matmul that reads it, unless there are so
// many workgroups that this costs more than a dispatch.
bool VulkanBackend::postpones(const RmsNorm& op) const {
    constexpr int kMaxRows = 1 << 15;  // output rows of the consumer
    if (op.x.rows != 1 || op.consumers.size() != 1) return false;
    const auto& consumer = static_cast<const VulkanWeight&>(*op.consumers.front());
    return consumer.rows <= kMaxRows &&
           std::ranges::all_of(consumer.parts(), [&](const WeightPart& part) {
               return norms(*device_, part.segment.dtype, op.x.cols);
           });
}

template <>
void VulkanBackend::execute(const RmsNorm& op) {
    forget_norms();
    if (postpones(op)) {
        postponed_ = op;
        return;
    }
    NormParams params = params_of(op);
    const bool halves = op.x.rows > 1 && !op.consumers.empty() &&
                        std::ranges::all_of(op.consumers, [&](const Weight* consumer) {
                            return reads_halves(*device_, *consumer);
                        });
    if (halves) halves_for_ = op.consumers;
    params.units = halves ? padded_rows(op.x.rows) : units(op.out);
    params.out_stride = halves ? 0 : stride_words(op.out);
    dispatch({halves ? "rms_norm_halves" : "rms_norm", {!halves && quantises(op.out)}}, params,
             {writes(halves ? scratch_.halves : op.out), reads(op.x), reads(op.weight)},
             {uint32_t(op.x.rows)}, 2.0 * op.x.rows * op.x.cols);
}

}  // namespace aerie::vulkan
