// Handles that destroy themselves, so that what fails half-way leaves nothing behind.
#pragma once

#include <utility>

#include "vulkan/device.h"

namespace aerie::vulkan {

// A handle and the function of the table that destroys it. Must not outlive the device.
template <class Handle, auto Destroy>
class Owned {
  public:
    Owned() = default;
    Owned(const Device& device, Handle handle) : device_(&device), handle_(handle) {}
    Owned(Owned&& other) noexcept { swap(other); }
    Owned& operator=(Owned&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Owned() {
        if (handle_) (device_->vk.*Destroy)(device_->handle, handle_, nullptr);
    }

    operator Handle() const { return handle_; }

  private:
    void swap(Owned& other) {
        std::swap(device_, other.device_);
        std::swap(handle_, other.handle_);
    }

    const Device* device_ = nullptr;
    Handle handle_ = VK_NULL_HANDLE;
};

using OwnedBuffer = Owned<VkBuffer, &VolkDeviceTable::vkDestroyBuffer>;
using OwnedCommandPool = Owned<VkCommandPool, &VolkDeviceTable::vkDestroyCommandPool>;
using OwnedDescriptorPool = Owned<VkDescriptorPool, &VolkDeviceTable::vkDestroyDescriptorPool>;
using OwnedFence = Owned<VkFence, &VolkDeviceTable::vkDestroyFence>;
using OwnedMemory = Owned<VkDeviceMemory, &VolkDeviceTable::vkFreeMemory>;
using OwnedModule = Owned<VkShaderModule, &VolkDeviceTable::vkDestroyShaderModule>;
using OwnedPipeline = Owned<VkPipeline, &VolkDeviceTable::vkDestroyPipeline>;
using OwnedPipelineCache = Owned<VkPipelineCache, &VolkDeviceTable::vkDestroyPipelineCache>;
using OwnedPipelineLayout = Owned<VkPipelineLayout, &VolkDeviceTable::vkDestroyPipelineLayout>;
using OwnedQueryPool = Owned<VkQueryPool, &VolkDeviceTable::vkDestroyQueryPool>;
using OwnedSetLayout = Owned<VkDescriptorSetLayout, &VolkDeviceTable::vkDestroyDescriptorSetLayout>;

}  // namespace aerie::vulkan
