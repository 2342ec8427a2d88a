// Each dispatch has two queries, before and after it; nothing else runs between them.
#include "vulkan/timer.h"

#include "vulkan/check.h"

namespace aerie::vulkan {

namespace {

OwnedQueryPool make_queries(const Device& device, uint32_t count) {
    const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                        .pNext = nullptr,
                                        .flags = 0,
                                        .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                        .queryCount = count,
                                        .pipelineStatistics = 0};
    VkQueryPool pool;
    VK_CHECK(device, vkCreateQueryPool, device.handle, &info, nullptr, &pool);
    return {device, pool};
}

}  // namespace

Timer::Timer(Device& device) : device_(device), pool_(make_queries(device, 2 * kMaxOps)) {}

void Timer::reset(VkCommandBuffer commands) {
    ops_.clear();
    device_.vk.vkCmdResetQueryPool(commands, pool_, 0, 2 * kMaxOps);
}

void Timer::start(VkCommandBuffer commands) {
    if (ops_.size() < kMaxOps)
        device_.vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool_,
                                       uint32_t(2 * ops_.size()));
}

void Timer::stop(VkCommandBuffer commands, const char* op) {
    if (ops_.size() == kMaxOps) return;
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
        time.seconds += device_.seconds_between(ticks[2 * i], ticks[2 * i + 1]);
    }
}

Stopwatch::Stopwatch(Device& device, VkCommandPool pool)
    : device_(device), pool_(pool), queries_(make_queries(device, 2)) {
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .pNext = nullptr,
        .commandPool = pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 2};
    VK_CHECK(device, vkAllocateCommandBuffers, device.handle, &info, handles_);
}

Stopwatch::~Stopwatch() {
    device_.vk.vkFreeCommandBuffers(device_.handle, pool_, 2, handles_);
}

void Stopwatch::record() {
    for (uint32_t i = 0; i < 2; ++i) {
        const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                               .pNext = nullptr,
                                               .flags = 0,
                                               .pInheritanceInfo = nullptr};
        VK_CHECK(device_, vkBeginCommandBuffer, handles_[i], &info);
        if (i == 0) device_.vk.vkCmdResetQueryPool(handles_[i], queries_, 0, 2);
        // Both timestamps are taken when everything submitted before has ended.
        device_.vk.vkCmdWriteTimestamp(handles_[i], VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_,
                                       i);
        VK_CHECK(device_, vkEndCommandBuffer, handles_[i]);
    }
}

double Stopwatch::seconds() const {
    uint64_t ticks[2] = {};
    VK_CHECK(device_, vkGetQueryPoolResults, device_.handle, queries_, 0, 2, sizeof(ticks), ticks,
             sizeof(uint64_t), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    return device_.seconds_between(ticks[0], ticks[1]);
}

}  // namespace aerie::vulkan
