// Allocations of a device. What is freed is first no longer used by the queue.
#pragma once

#include <volk.h>

#include <memory>

#include "core/tensor.h"
#include "vulkan/owned.h"

namespace aerie::vulkan {

class Queue;

enum class Place { device, staging };  // staging: the host's, for transfers

// A buffer with memory of its own. `mapped` is null where the host cannot see it.
struct VulkanMemory final : Memory {
    // Throws Error. `queue` may be null for memory that only its owner uses.
    VulkanMemory(std::shared_ptr<Device> device, std::shared_ptr<Queue> queue, size_t size_bytes,
                 Place place);
    ~VulkanMemory() override;

    VkBuffer buffer() const { return buffer_; }
    std::byte* mapped = nullptr;

  private:
    void create_buffer();
    int memory_type(uint32_t allowed, bool visible) const;

    std::shared_ptr<Device> device_;
    std::shared_ptr<Queue> queue_;
    OwnedMemory memory_;
    OwnedBuffer buffer_;
};

inline VulkanMemory& memory_of(const Tensor& tensor) {
    return static_cast<VulkanMemory&>(*tensor.memory);
}

}  // namespace aerie::vulkan
