// Choices from rows of logits.
#include "core/error.h"
#include "vulkan/backend.h"

namespace aerie::vulkan {

void VulkanBackend::do_top_k(const TopKStep&) {
    throw Error("vulkan: top_k");
}
void VulkanBackend::do_beam(const BeamStep&) {
    throw Error("vulkan: beam");
}
void VulkanBackend::do_sample(Tensor, const SampleStep&) {
    throw Error("vulkan: sample");
}
void VulkanBackend::do_probs(Tensor, const Choice&) {
    throw Error("vulkan: probs");
}

}  // namespace aerie::vulkan
