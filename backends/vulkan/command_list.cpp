// Records commands. Push constants begin with the offset of each binding in words, since a view may
// begin at any word but a descriptor only at an aligned byte.
#include "vulkan/command_list.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "vulkan/check.h"

namespace aerie::vulkan {

namespace {

constexpr uint32_t kSetsOfPool = 256;
constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkPipelineStageFlags kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkPipelineStageFlags kStages = kCompute | kTransfer;

VkAccessFlags writes_of(VkPipelineStageFlags stages) {
    VkAccessFlags access = 0;
    if (stages & kCompute) access |= VK_ACCESS_SHADER_WRITE_BIT;
    if (stages & kTransfer) access |= VK_ACCESS_TRANSFER_WRITE_BIT;
    return access;
}
VkAccessFlags reads_of(VkPipelineStageFlags stages) {
    VkAccessFlags access = 0;
    if (stages & kCompute) access |= VK_ACCESS_SHADER_READ_BIT;
    if (stages & kTransfer) access |= VK_ACCESS_TRANSFER_READ_BIT;
    return access;
}

size_t whole_words(size_t bytes) {
    return (bytes + 3) / 4 * 4;
}

// Two dense matrices are one region; others are copied row by row.
std::vector<VkBufferCopy> regions_of(const Tensor& to, const Tensor& from) {
    if (is_dense(to) && is_dense(from))
        return {{from.offset_bytes, to.offset_bytes, extent_bytes(from)}};
    std::vector<VkBufferCopy> regions;
    for (int r = 0; r < from.rows; ++r) {
        const Tensor out = to.row_range(r, 1), in = from.row_range(r, 1);
        regions.push_back({in.offset_bytes, out.offset_bytes, extent_bytes(in)});
    }
    return regions;
}

}  // namespace

CommandList::CommandList(Device& device, Pipelines& pipelines, VkCommandPool pool,
                         VkCommandBufferUsageFlags usage)
    : device_(device), pipelines_(pipelines), pool_(pool), usage_(usage) {
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .pNext = nullptr,
        .commandPool = pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};
    if (device.profile()) timer_ = std::make_unique<Timer>(device);
    VK_CHECK(device, vkAllocateCommandBuffers, device.handle, &info, &handle_);
}

CommandList::~CommandList() {
    device_.vk.vkFreeCommandBuffers(device_.handle, pool_, 1, &handle_);
}

void CommandList::begin() {
    for (const OwnedDescriptorPool& pool : set_pools_)
        VK_CHECK(device_, vkResetDescriptorPool, device_.handle, pool, 0);
    set_pool_ = 0;
    bound_ = VK_NULL_HANDLE;
    waiting_.clear();
    work_ = most_work_ = 0;
    counts_ = {};
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .pNext = nullptr,
                                           .flags = usage_,
                                           .pInheritanceInfo = nullptr};
    VK_CHECK(device_, vkBeginCommandBuffer, handle_, &info);
    open_ = true;
    if (timer_) timer_->reset(handle_);
    used_ = 0;
    barrier(kStages, kStages);
}

void CommandList::end() {
    open_ = false;
    for (const auto& command : waiting_) command();
    waiting_.clear();
    const VkMemoryBarrier to_host = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .pNext = nullptr,
                                     .srcAccessMask = writes_of(kStages),
                                     .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    device_.vk.vkCmdPipelineBarrier(handle_, kStages, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0,
                                    nullptr, 0, nullptr);
    VK_CHECK(device_, vkEndCommandBuffer, handle_);
}

void CommandList::add_times(OpTimes& times) const {
    if (timer_) timer_->add_to(times);
}

template <class Command>
void CommandList::give(Command command) {
    if (waiting_.empty())
        command();
    else
        waiting_.push_back(command);
}

void CommandList::barrier(VkPipelineStageFlags before, VkPipelineStageFlags after) {
    hazards_.barrier();
    ordered_ = after;
    give([this, before, after] {
        const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .pNext = nullptr,
                                     .srcAccessMask = writes_of(before),
                                     .dstAccessMask = reads_of(after) | writes_of(after)};
        device_.vk.vkCmdPipelineBarrier(handle_, before, after, 0, 1, &all, 0, nullptr, 0, nullptr);
    });
}

// A barrier holds back only the stage of the next command; a command of another stage needs a
// barrier of its own. The list's first barrier orders the list after whatever ran before it.
void CommandList::order(VkPipelineStageFlags stage, std::span<const Access> accesses) {
    const bool waits = !(ordered_ & stage) ||
                       std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
                           return access.tensor && hazards_.conflicts(access);
                       });
    if (waits) {
        barrier(used_, stage);
        ++counts_.barriers;
    }
    used_ |= stage;
    for (const Access& access : accesses)
        if (access.tensor) hazards_.add(access);
}

void CommandList::dispatch(const Dispatch& d) {
    if (d.grid.x == 0 || d.grid.y == 0 || d.grid.z == 0) return;
    assert(d.bindings.size() <= kMaxBindings);
    assert(kMaxBindings * 4 + d.params_bytes <= kPushBytes);
    if (timer_) barrier(kStages, kStages);  // so that it runs alone between its timestamps
    order(kCompute, d.bindings);
    std::array<uint32_t, kPushBytes / 4> push = {};
    const VkDescriptorSet set = make_set(d, push.data());
    std::memcpy(push.data() + kMaxBindings, d.params, d.params_bytes);
    const uint32_t push_bytes = kMaxBindings * 4 + d.params_bytes;
    const auto command = [this, set, push, push_bytes, grid = d.grid, base = d.base,
                          op = d.kernel.shader](VkPipeline pipeline) {
        const VolkDeviceTable& vk = device_.vk;
        if (pipeline != bound_)
            vk.vkCmdBindPipeline(handle_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        bound_ = pipeline;
        vk.vkCmdBindDescriptorSets(handle_, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_.layout(), 0,
                                   1, &set, 0, nullptr);
        vk.vkCmdPushConstants(handle_, pipelines_.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                              push_bytes, push.data());
        if (timer_) timer_->start(handle_);
        if (base.x == 0 && base.y == 0)  // which every validation layer tracks
            vk.vkCmdDispatch(handle_, grid.x, grid.y, grid.z);
        else
            vk.vkCmdDispatchBase(handle_, base.x, base.y, 0, grid.x, grid.y, grid.z);
        if (timer_) timer_->stop(handle_, op);
    };
    const VkPipeline pipeline = pipelines_.find(d.kernel);
    if (pipeline && waiting_.empty())
        command(pipeline);
    else
        waiting_.push_back(
            [this, command, kernel = d.kernel] { command(pipelines_.wait_for(kernel)); });
    work_ += d.work;
    most_work_ += d.most_work;
    ++counts_.dispatches;
}

VkDescriptorSet CommandList::make_set(const Dispatch& dispatch, uint32_t* offsets) {
    const std::span<const Access> bindings = dispatch.bindings;
    const size_t most = device_.traits().storage_range;
    VkDescriptorBufferInfo infos[kMaxBindings];
    VkWriteDescriptorSet writes[kMaxBindings];
    uint32_t count = 0;
    const VkDescriptorSet set = allocate_set();
    for (uint32_t i = 0; i < bindings.size(); ++i) {
        const Tensor& tensor = bindings[i].tensor;
        if (!tensor) continue;
        const size_t begin = tensor.offset_bytes / device_.traits().offset_alignment *
                             device_.traits().offset_alignment;
        const size_t end = tensor.offset_bytes + whole_words(extent_bytes(tensor));
        assert(tensor.offset_bytes % 4 == 0);
        if (end - begin > most)
            throw Error(device_.name() + ": " + dispatch.kernel.shader + " works on " +
                        std::to_string((end - begin) >> 20) + " MiB in one piece, and " +
                        device_.traits().name + " takes at most " + std::to_string(most >> 20));
        offsets[i] = uint32_t((tensor.offset_bytes - begin) / 4);
        infos[count] = {memory_of(tensor).buffer(), begin, std::max<size_t>(end - begin, 4)};
        writes[count] = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                         .pNext = nullptr,
                         .dstSet = set,
                         .dstBinding = i,
                         .dstArrayElement = 0,
                         .descriptorCount = 1,
                         .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                         .pImageInfo = nullptr,
                         .pBufferInfo = &infos[count],
                         .pTexelBufferView = nullptr};
        ++count;
    }
    device_.vk.vkUpdateDescriptorSets(device_.handle, count, writes, 0, nullptr);
    return set;
}

// Takes a set from the pool in use, else from the next pool, which is created if there is none.
VkDescriptorSet CommandList::allocate_set() {
    const VkDescriptorSetLayout layout = pipelines_.set_layout();
    VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                        .pNext = nullptr,
                                        .descriptorPool = VK_NULL_HANDLE,
                                        .descriptorSetCount = 1,
                                        .pSetLayouts = &layout};
    VkDescriptorSet set = VK_NULL_HANDLE;
    for (; set_pool_ < set_pools_.size(); ++set_pool_) {
        info.descriptorPool = set_pools_[set_pool_];
        if (device_.vk.vkAllocateDescriptorSets(device_.handle, &info, &set) == VK_SUCCESS)
            return set;
    }
    info.descriptorPool = add_set_pool();
    VK_CHECK(device_, vkAllocateDescriptorSets, device_.handle, &info, &set);
    return set;
}

VkDescriptorPool CommandList::add_set_pool() {
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                       kSetsOfPool * kMaxBindings};
    const VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .pNext = nullptr,
                                             .flags = 0,
                                             .maxSets = kSetsOfPool,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    VkDescriptorPool pool;
    VK_CHECK(device_, vkCreateDescriptorPool, device_.handle, &info, nullptr, &pool);
    set_pools_.emplace_back(device_, pool);
    return pool;
}

void CommandList::update(const Tensor& to, const void* from) {
    const Access access = writes(to);
    order(kTransfer, {&access, 1});
    const auto command = [this, to](const void* data) {
        device_.vk.vkCmdUpdateBuffer(handle_, memory_of(to).buffer(), to.offset_bytes,
                                     extent_bytes(to), data);
    };
    if (waiting_.empty()) return command(from);
    const std::byte* bytes = static_cast<const std::byte*>(from);
    waiting_.push_back(
        [command, data = std::vector(bytes, bytes + extent_bytes(to))] { command(data.data()); });
}

void CommandList::copy(const Tensor& to, const Tensor& from) {
    const Access accesses[] = {writes(to), reads(from)};
    order(kTransfer, accesses);
    give([this, to, from] {
        const std::vector<VkBufferCopy> regions = regions_of(to, from);
        device_.vk.vkCmdCopyBuffer(handle_, memory_of(from).buffer(), memory_of(to).buffer(),
                                   uint32_t(regions.size()), regions.data());
    });
}

void CommandList::fill_zero(Memory& to) {
    const Access access = writes(whole(to));
    order(kTransfer, {&access, 1});
    give([this, buffer = static_cast<VulkanMemory&>(to).buffer()] {
        device_.vk.vkCmdFillBuffer(handle_, buffer, 0, VK_WHOLE_SIZE, 0);
    });
}

}  // namespace aerie::vulkan
