// Two queries a dispatch: before and after it, with nothing else running.
#include "vulkan/timer.h"

#include "vulkan/check.h"

namespace aerie::vulkan {

Timer::Timer(Device& device) : device_(device) {
    const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                        .pNext = nullptr,
                                        .flags = 0,
                                        .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                        .queryCount = 2 * kMostOps,
                                        .pipelineStatistics = 0};
    VkQueryPool pool;
    VK_CHECK(device, vkCreateQueryPool, device.handle, &info, nullptr, &pool);
    pool_ = {device, pool};
}

void Timer::reset(VkCommandBuffer commands) {
    ops_.clear();
    device_.vk.vkCmdResetQueryPool(commands, pool_, 0, 2 * kMostOps);
}

void Timer::start(VkCommandBuffer commands) {
    if (ops_.size() < kMostOps)
        device_.vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool_,
                                       uint32_t(2 * ops_.size()));
}

void Timer::stop(VkCommandBuffer commands, const char* op) {
    if (ops_.size() == kMostOps) return;
    device_.vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool_,
                                   uint32_t(2 * ops_.size() + 1));
    ops_.push_back(op);
}

void Timer::add_to(OpTimes& times) const {
    if (ops_.empty()) return;
    std::vector<uint64_t> ticks(2 * ops_.size());
    VK_CHECK(device_, vkGetQueryPoolResults, device_.handle, pool_, 0, uint32_t(ticks.size()),
             ticks.size() * sizeof(uint64_t), ticks.data(), sizeof(uint64_t),
             VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    for (size_t i = 0; i < ops_.size(); ++i) {
        OpTime& time = times[ops_[i]];
        time.op = ops_[i];
        ++time.count;
        time.seconds +=
            double(ticks[2 * i + 1] - ticks[2 * i]) * double(device_.traits().timestamp_seconds);
    }
}

}  // namespace aerie::vulkan
