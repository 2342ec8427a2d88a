// The Vulkan loader and its devices. The loader is opened at run time: a machine without Vulkan has
// no devices.
#pragma once

#include <volk.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace aerie::vulkan {

// A Vulkan structure with sType and pNext set and all else zero.
template <class T>
T structure(VkStructureType type, void* next = nullptr) {
    T made = {};
    made.sType = type;
    made.pNext = next;
    return made;
}

// The float controls that a driver supports. The first three are of 32-bit floats.
struct FloatControls {
    bool denormals = false, infinities = false, rounding = false;  // rounding: to nearest even
    bool halves = false, doubles_with_halves = false;  // denormals of f16; whether they need f64's
};

// The properties of a device that aerie looks at.
struct Traits {
    std::string name;    // "AMD Radeon RX 7900 XTX (RADV NAVI31)"
    std::string driver;  // "radv Mesa 24.1"
    std::string uuid;    // 32 hexadecimal digits
    VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
    VkDriverId driver_id = {};
    uint32_t api_version = 0;
    std::optional<uint32_t> queue_family;
    VkPhysicalDeviceMemoryProperties memory = {};
    size_t memory_bytes = 0;   // size of the largest device-local heap
    size_t storage_range = 0;  // most bytes of one binding
    size_t offset_alignment = 0;
    size_t allocation_bytes = 0;   // most bytes of one allocation
    uint32_t storage_buffers = 0;  // most bindings of a shader
    uint32_t shared_bytes = 0;
    uint32_t group_size = 0;  // most invocations of a workgroup, along x
    uint32_t subgroup_size = 0, least_subgroup = 0, most_subgroup = 0;
    double timestamp_seconds = 0;  // seconds per tick; 0: no timestamps
    uint32_t timestamp_bits = 0;
    bool portability_subset = false;
    bool integer_dot = false;  // four int8 products in one instruction
    bool mixed_dot = false;    // the same of signed times unsigned, in hardware
    bool float16 = false;      // f16 arithmetic; only matrices need it
    bool int8 = false;
    bool storage8 = false, storage16 = false;
    bool cooperative_matrix = false;  // the feature is reported
    bool device_scope = false;        // a feature of Vulkan's memory model
    FloatControls float_controls;
    bool buffer_address = false;
    bool subgroup_control = false, full_subgroups = false;
    bool requires_subgroups = false;  // compute shaders can require a subgroup size
    uint32_t most_subgroups = 0;      // most subgroups of a workgroup then
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

// The queue family to compute with, if there is a choice one without graphics; none if none
// computes.
std::optional<uint32_t> choose_queue_family(std::span<const VkQueueFamilyProperties> families);

// The Vulkan instance. One is enough for a process; it is opened on first use and closed with its
// last user.
class Instance {
  public:
    // Null if there is no loader or it creates no instance of Vulkan 1.2; `why` then says which,
    // and what to install.
    static std::shared_ptr<Instance> get(std::string* why = nullptr);
    ~Instance();
    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;

    // Devices in the loader's order: vulkan:0, vulkan:1, ...
    struct Found {
        VkPhysicalDevice handle;
        Traits traits;
    };
    const std::vector<Found>& devices() const { return devices_; }
    VkInstance handle() const { return handle_; }

  private:
    Instance() = default;
    std::string open();  // why it cannot be opened; empty: it is open

    VkInstance handle_ = VK_NULL_HANDLE;
    std::vector<Found> devices_;
};

// Index of a device in instance.devices(). `device` is "vulkan:1", or "vulkan:" and a part of its
// name or its UUID. Throws Error.
size_t find_device(const Instance& instance, const std::string& device);

}  // namespace aerie::vulkan
