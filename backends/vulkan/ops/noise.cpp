// Op Noise: one counter, the noise of four tokens, per invocation.
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

template <>
void VulkanBackend::execute(const Noise& op) {
    const NoiseParams params = {uint32_t(op.out.cols), stride_words(op.out), uint32_t(op.seed),
                                uint32_t(op.seed >> 32)};
    const int counters = (op.out.cols + 63) / 64 * 16;
    dispatch({"noise"}, params, {writes(op.out), reads(op.positions)},
             {groups(counters, kGroupSize), uint32_t(op.out.rows)},
             40.0 * op.out.rows * op.out.cols);
}

}  // namespace aerie::vulkan
