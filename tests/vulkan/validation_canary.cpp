// One mistake on purpose, which the validation layer must report: validation_canary core|sync|gpu.
#include <cstdio>
#include <cstring>

#include "backend/backend.h"
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/device.h"
#include "vulkan/test_device.h"

namespace aerie::vulkan {
namespace {

PFN_vkCmdPipelineBarrier real_barrier;

// Waits for a shader's access at a stage where no shader runs.
void misuse_barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags,
                    VkDependencyFlags flags, uint32_t count, const VkMemoryBarrier* barriers,
                    uint32_t, const VkBufferMemoryBarrier*, uint32_t, const VkImageMemoryBarrier*) {
    real_barrier(commands, from, VK_PIPELINE_STAGE_HOST_BIT, flags, count, barriers, 0, nullptr, 0,
                 nullptr);
}

void omit_barrier(VkCommandBuffer, VkPipelineStageFlags, VkPipelineStageFlags, VkDependencyFlags,
                  uint32_t, const VkMemoryBarrier*, uint32_t, const VkBufferMemoryBarrier*,
                  uint32_t, const VkImageMemoryBarrier*) {}

int run(const std::string& mistake) {
    DeviceChoices choices;
    choices.patch = [&](VolkDeviceTable& vk) {
        real_barrier = vk.vkCmdPipelineBarrier;
        if (mistake == "core") vk.vkCmdPipelineBarrier = misuse_barrier;
        if (mistake == "sync") vk.vkCmdPipelineBarrier = omit_barrier;
    };
    const auto instance = Instance::get();
    if (!instance || instance->devices().empty()) {
        std::printf("SKIPPED: no Vulkan device here\n");
        return 77;
    }
    const auto device = std::make_shared<Device>(instance, test_device_index(*instance), choices);
    const auto queue = std::make_shared<Queue>(device);
    VulkanMemory a(device, queue, 256, Place::device), b(device, queue, 256, Place::device);
    const auto copy = [&](Memory& to, Memory& from, uint32_t units) {
        const UnitParams params = {units, 64, 64, 0};
        const Access accesses[] = {writes(dense(&to, DType::F32, 1, 64)),
                                   reads(dense(&from, DType::F32, 1, 64))};
        queue->dispatch({{"copy"}, accesses, &params, sizeof(params), {2}, 64});
    };
    copy(b, a, 64);
    copy(a, b, mistake == "gpu" ? 65 : 64);  // one beyond the end of both
    queue->wait();
    return 0;
}

}  // namespace
}  // namespace aerie::vulkan

int main(int count, char** arguments) {
    return count == 2 ? aerie::vulkan::run(arguments[1]) : 2;
}
