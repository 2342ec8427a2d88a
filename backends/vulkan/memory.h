// Allocations of a device. Memory is freed only once the queue no longer uses it.
#pragma once

#include <volk.h>

#include <memory>

#include "core/tensor.h"
#include "vulkan/owned.h"

namespace aerie::vulkan {

class Queue;

enum class Place { device, staging };  // staging: host memory for transfers

// Index of the memory type for a buffer that may have the types of `allowed` (bits); -1: none
// suits. Memory for the device is device-local, and also visible to the host where both share
// memory (`unified`).
int choose_memory_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed,
                       Place place, bool unified);

// A buffer with memory of its own. `mapped` is null where the host cannot see it.
struct VulkanMemory final : Memory {
    // Throws Error. `queue` may be null for memory that only its owner uses.
    VulkanMemory(std::shared_ptr<Device> device, std::shared_ptr<Queue> queue, size_t size_bytes,
                 Place place);
    ~VulkanMemory() override;

    VkBuffer buffer() const { return buffer_; }
    std::byte* mapped = nullptr;
    bool cached = false;  // the host caches it; otherwise its reads are slow

  private:
    void create_buffer();
    void check_size() const;

    std::shared_ptr<Device> device_;
    std::shared_ptr<Queue> queue_;
    OwnedMemory memory_;
    OwnedBuffer buffer_;
};

inline VulkanMemory& memory_of(const Tensor& tensor) {
    return static_cast<VulkanMemory&>(*tensor.memory);
}

}  // namespace aerie::vulkan
