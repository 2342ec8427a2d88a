// Allocations of a device. What is freed is first no longer used by the queue.
#pragma once

#include <volk.h>

#include <memory>

#include "core/tensor.h"
#include "vulkan/device.h"

namespace aerie::vulkan {

class Queue;

enum class Place { device, staging };  // staging: the host's, for transfers

// A buffer with memory of its own. `mapped` is null where the host cannot see it.
struct VulkanMemory final : Memory {
    // Throws Error. `queue` may be null for memory that only its owner uses.
    VulkanMemory(std::shared_ptr<Device> device, std::shared_ptr<Queue> queue, size_t size_bytes,
                 Place place);
    ~VulkanMemory() override;

    VkBuffer buffer = VK_NULL_HANDLE;
    std::byte* mapped = nullptr;

  private:
    void allocate(Place place);
    void release();

    std::shared_ptr<Device> device_;
    std::shared_ptr<Queue> queue_;
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
};

inline VulkanMemory& memory_of(const Tensor& tensor) {
    return static_cast<VulkanMemory&>(*tensor.memory);
}

}  // namespace aerie::vulkan
