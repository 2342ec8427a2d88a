// One VkBuffer and one VkDeviceMemory an allocation: there are a few hundred, weights included.
#include "vulkan/memory.h"

#include "vulkan/check.h"
#include "vulkan/queue.h"

namespace aerie::vulkan {

VulkanMemory::VulkanMemory(std::shared_ptr<Device> device, std::shared_ptr<Queue> queue,
                           size_t bytes, Place place)
    : device_(std::move(device)), queue_(std::move(queue)) {
    size_bytes = bytes;
    create_buffer();
    const VolkDeviceTable& vk = device_->vk;
    VkMemoryRequirements needs;
    vk.vkGetBufferMemoryRequirements(device_->handle, buffer_, &needs);
    const bool visible = place == Place::staging || device_->unified();
    const VkMemoryAllocateInfo allocation = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = nullptr,
        .allocationSize = needs.size,
        .memoryTypeIndex = uint32_t(memory_type(needs.memoryTypeBits, visible))};
    VkDeviceMemory memory;
    const VkResult result = vk.vkAllocateMemory(device_->handle, &allocation, nullptr, &memory);
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY)
        throw Error(device_->name() + ": " + describe(result) + ": no " +
                    std::to_string(size_bytes >> 20) + " MiB are left on " +
                    device_->traits().name);
    check(device_->name(), result, "vkAllocateMemory");
    memory_ = {*device_, memory};
    VK_CHECK(*device_, vkBindBufferMemory, device_->handle, buffer_, memory_, 0);
    if (!visible) return;
    void* address = nullptr;
    VK_CHECK(*device_, vkMapMemory, device_->handle, memory_, 0, VK_WHOLE_SIZE, 0, &address);
    mapped = static_cast<std::byte*>(address);
}

VulkanMemory::~VulkanMemory() {
    if (queue_) queue_->forget_memory();
}

void VulkanMemory::create_buffer() {
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .pNext = nullptr,
                                     .flags = 0,
                                     .size = std::max<size_t>((size_bytes + 3) / 4 * 4, 16),
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                                     .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
                                     .queueFamilyIndexCount = 0,
                                     .pQueueFamilyIndices = nullptr};
    VkBuffer buffer;
    VK_CHECK(*device_, vkCreateBuffer, device_->handle, &info, nullptr, &buffer);
    buffer_ = {*device_, buffer};
}

int VulkanMemory::memory_type(uint32_t allowed, bool visible) const {
    constexpr VkMemoryPropertyFlags kHost =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    int type = -1;
    if (visible) type = device_->memory_type(allowed, kHost | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    if (visible && type < 0) type = device_->memory_type(allowed, kHost);
    if (!visible) type = device_->memory_type(allowed, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    if (type < 0) throw Error(device_->name() + ": no memory of the kind that aerie needs");
    return type;
}

}  // namespace aerie::vulkan
