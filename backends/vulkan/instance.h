// The Vulkan loader and its devices. Loaded at run time: a machine without Vulkan just has none.
#pragma once

#include <volk.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "vulkan/cooperative.h"

namespace aerie::vulkan {

// A structure of Vulkan's that is zero but for its type and what follows it.
template <class T>
T structure(VkStructureType type, void* next = nullptr) {
    T made = {};
    made.sType = type;
    made.pNext = next;
    return made;
}

// What of a device matters to us.
struct Traits {
    std::string name;    // "AMD Radeon RX 7900 XTX (RADV NAVI31)"
    std::string driver;  // "radv Mesa 24.1"
    std::string uuid;    // 32 hexadecimal digits
    VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
    uint32_t api_version = 0;
    uint32_t queue_family = 0;
    size_t memory_bytes = 0;   // of the heap that buffers come from
    size_t storage_range = 0;  // most bytes of one binding
    size_t offset_alignment = 0;
    size_t allocation_bytes = 0;  // most of one allocation
    uint32_t shared_bytes = 0;
    uint32_t subgroup_size = 0, least_subgroup = 0, most_subgroup = 0;
    float timestamp_seconds = 0;  // of one tick; 0: no timestamps
    bool portability_subset = false;
    bool integer_dot = false;  // four int8 products in one instruction
    bool float16 = false;      // arithmetic; not needed
    bool storage8 = false, storage16 = false;
    bool cooperative_matrix = false;
    MatrixShape f16_matrix, s8_matrix;  // for matmul; zero: not there
    bool buffer_address = false;
    bool subgroup_control = false;
    bool subgroup_broadcast = false;
    std::string missing;  // why it cannot run aerie; empty if it can

    uint32_t widest_subgroup() const { return std::max(subgroup_size, most_subgroup); }
    bool unified() const {  // host and device share memory
        return type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
               type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    }
};

// Keeps the instance alive. One per process is enough; opened on first use.
class Instance {
  public:
    // Null if there is no loader or it has no instance for us.
    static std::shared_ptr<Instance> get();
    ~Instance();
    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;

    // In the loader's order: vulkan:0, vulkan:1, ...
    struct Found {
        VkPhysicalDevice handle;
        Traits traits;
    };
    const std::vector<Found>& devices() const { return devices_; }

  private:
    Instance() = default;
    bool open();

    VkInstance handle_ = VK_NULL_HANDLE;
    std::vector<Found> devices_;
};

}  // namespace aerie::vulkan
