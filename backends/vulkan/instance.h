// The Vulkan loader and its devices. Loaded at run time: a machine without Vulkan just has none.
#pragma once

#include <volk.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace aerie::vulkan {

// A structure of Vulkan's that is zero but for its type and what follows it.
template <class T>
T structure(VkStructureType type, void* next = nullptr) {
    T made = {};
    made.sType = type;
    made.pNext = next;
    return made;
}

// What a driver can be made to keep in arithmetic of 32-bit floats, and of f16: its denormals.
struct FloatControls {
    bool denormals = false, infinities = false, rounding = false;  // rounding: to nearest even
    bool halves = false, doubles_with_halves = false;  // which can only be declared with f64's
};

// What of a device matters to us.
struct Traits {
    std::string name;    // "AMD Radeon RX 7900 XTX (RADV NAVI31)"
    std::string driver;  // "radv Mesa 24.1"
    std::string uuid;    // 32 hexadecimal digits
    VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
    VkDriverId driver_id = {};
    uint32_t api_version = 0;
    std::optional<uint32_t> queue_family;
    VkPhysicalDeviceMemoryProperties memory = {};
    size_t memory_bytes = 0;   // of the largest heap that is the device's own
    size_t storage_range = 0;  // most bytes of one binding
    size_t offset_alignment = 0;
    size_t allocation_bytes = 0;   // most of one allocation
    uint32_t storage_buffers = 0;  // that a shader can have
    uint32_t shared_bytes = 0;
    uint32_t group_size = 0;  // most invocations of a workgroup, in one row
    uint32_t subgroup_size = 0, least_subgroup = 0, most_subgroup = 0;
    double timestamp_seconds = 0;  // of one tick; 0: no timestamps
    uint32_t timestamp_bits = 0;
    bool portability_subset = false;
    bool integer_dot = false;  // four int8 products in one instruction
    bool mixed_dot = false;    // the same of signed with unsigned ones, in hardware
    bool float16 = false;      // arithmetic; not needed
    bool int8 = false;
    bool storage8 = false, storage16 = false;
    bool cooperative_matrix = false;  // is reported
    bool device_scope = false;        // of Vulkan's memory model
    FloatControls float_controls;
    bool buffer_address = false;
    bool subgroup_control = false, full_subgroups = false;
    bool requires_subgroups = false;  // of a width that is asked for, in compute shaders
    uint32_t most_subgroups = 0;      // of a workgroup then
    bool subgroup_broadcast = false;
    std::string missing;  // why it cannot run aerie; empty if it can

    uint32_t widest_subgroup() const { return std::max(subgroup_size, most_subgroup); }
    bool unified() const {  // host and device share memory
        return type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
               type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    }
};

// Why a device with these traits cannot run aerie; empty if it can.
std::string missing_of(const Traits& traits);

// The family that computes; one without graphics if there is a choice.
std::optional<uint32_t> choose_queue_family(std::span<const VkQueueFamilyProperties> families);

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
    VkInstance handle() const { return handle_; }

  private:
    Instance() = default;
    bool open();

    VkInstance handle_ = VK_NULL_HANDLE;
    std::vector<Found> devices_;
};

// The place of a device among those of the instance: `device` is "vulkan:1", or "vulkan:" and a
// part of its name or its UUID. Throws Error.
size_t find_device(const Instance& instance, const std::string& device);

}  // namespace aerie::vulkan
