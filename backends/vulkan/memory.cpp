// Each allocation is one VkBuffer and one VkDeviceMemory: there are a few hundred, weights
// included.
#include "vulkan/memory.h"

#include "vulkan/check.h"
#include "vulkan/queue.h"

namespace aerie::vulkan {

// Memory that the host caches is slower for a device that must look into the host's caches. Types
// come in the driver's order of preference. Types that are coherent within the device, protected or
// lazily allocated are for other uses, and slow or forbidden for ours.
int choose_memory_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed,
                       Place place, bool unified) {
    constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    constexpr VkMemoryPropertyFlags kHost =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    constexpr VkMemoryPropertyFlags kUnfit =
        VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD |
        VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT;
    const VkMemoryPropertyFlags staging[] = {kHost | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, kHost};
    const VkMemoryPropertyFlags shared[] = {kLocal | kHost, kHost};
    const VkMemoryPropertyFlags device_local[] = {kLocal, kLocal};
    for (const VkMemoryPropertyFlags wanted : place == Place::staging ? staging
                                              : unified               ? shared
                                                                      : device_local)
        for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
            const VkMemoryPropertyFlags has = memory.memoryTypes[i].propertyFlags;
            if ((allowed >> i & 1) && (has & wanted) == wanted && !(has & kUnfit)) return int(i);
        }
    return -1;
}

VulkanMemory::VulkanMemory(std::shared_ptr<Device> device, std::shared_ptr<Queue> queue,
                           size_t bytes, Place place)
    : device_(std::move(device)), queue_(std::move(queue)) {
    size_bytes = bytes;
    check_size();
    create_buffer();
    const VolkDeviceTable& vk = device_->vk;
    VkMemoryRequirements needs;
    vk.vkGetBufferMemoryRequirements(device_->handle, buffer_, &needs);
    const bool visible = place == Place::staging || device_->unified();
    const VkPhysicalDeviceMemoryProperties& types = device_->traits().memory;
    const int type = choose_memory_type(types, needs.memoryTypeBits, place, device_->unified());
    if (type < 0)
        throw Error(device_->name() + ": no memory of the kind that aerie needs", Cause::no_device);
    cached = types.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    const VkMemoryAllocateInfo allocation = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                             .pNext = nullptr,
                                             .allocationSize = needs.size,
                                             .memoryTypeIndex = uint32_t(type)};
    VkDeviceMemory memory;
    const VkResult result = vk.vkAllocateMemory(device_->handle, &allocation, nullptr, &memory);
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY)
        throw Error(device_->name() + ": " + describe(result) + ": no " +
                        std::to_string(size_bytes >> 20) + " MiB are left on " +
                        device_->traits().name,
                    Cause::device_memory);
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

// The limit holds for one allocation: more free memory elsewhere on the device would not help.
void VulkanMemory::check_size() const {
    const size_t most = device_->traits().allocation_bytes;
    if (size_bytes > most)
        throw Error(device_->name() + ": " + device_->traits().name + " gives at most " +
                        std::to_string(most >> 20) + " MiB of memory in one piece, and " +
                        std::to_string(size_bytes >> 20) + " MiB are wanted",
                    Cause::device_memory);
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

}  // namespace aerie::vulkan
