// Finds devices and reads what they can do.
#define VOLK_IMPLEMENTATION
#include "vulkan/instance.h"

#include <cctype>
#include <cstring>
#include <mutex>
#include <set>

#include "vulkan/check.h"
#include "vulkan/cooperative.h"
#include "vulkan/pipelines.h"

namespace aerie::vulkan {

std::string describe(VkResult result) {
    switch (result) {
        case VK_ERROR_DEVICE_LOST:
            return "device lost";
        case VK_ERROR_OUT_OF_HOST_MEMORY:
            return "out of host memory";
        case VK_ERROR_OUT_OF_DEVICE_MEMORY:
            return "out of device memory";
        case VK_ERROR_OUT_OF_POOL_MEMORY:
        case VK_ERROR_FRAGMENTED_POOL:
            return "out of descriptor pool memory";
        case VK_ERROR_INITIALIZATION_FAILED:
            return "initialization failed";
        case VK_TIMEOUT:
            return "timeout";
        default:
            return "error " + std::to_string(int(result));
    }
}

namespace {

constexpr uint32_t kVersion = VK_API_VERSION_1_2;

template <class T, class Call>
std::vector<T> enumerate(const Call& call) {
    uint32_t count = 0;
    call(&count, nullptr);
    std::vector<T> all(count);
    call(&count, all.data());
    all.resize(count);
    return all;
}

std::set<std::string> extensions_of(VkPhysicalDevice device) {
    std::set<std::string> names;
    for (const VkExtensionProperties& e :
         enumerate<VkExtensionProperties>([&](uint32_t*count, VkExtensionProperties*to) {
             vkEnumerateDeviceExtensionProperties(device, nullptr, count, to);
         }))
        names.insert(e.extensionName);
    return names;
}

void read_limits(Traits& traits, const VkPhysicalDeviceLimits& limits) {
    traits.storage_range = limits.maxStorageBufferRange;
    traits.offset_alignment = limits.minStorageBufferOffsetAlignment;
    traits.storage_buffers =
        std::min({limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers,
                  limits.maxPerStageResources});
    traits.shared_bytes = limits.maxComputeSharedMemorySize;
    traits.group_size =
        std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
    traits.timestamp_seconds = double(limits.timestampPeriod) * 1e-9;
}

// Denormals and rounding count only where they can be set for 32 bits alone. Denormals of f16 count
// where they can be set alone or together with those of f64.
FloatControls float_controls_of(const VkPhysicalDeviceVulkan12Properties& v12) {
    constexpr auto kNone = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
    const bool with_doubles =
        v12.denormBehaviorIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY;
    return {.denormals = v12.shaderDenormPreserveFloat32 && v12.denormBehaviorIndependence != kNone,
            .infinities = bool(v12.shaderSignedZeroInfNanPreserveFloat32),
            .rounding = v12.shaderRoundingModeRTEFloat32 && v12.roundingModeIndependence != kNone,
            .halves = v12.shaderDenormPreserveFloat16 && v12.denormBehaviorIndependence != kNone &&
                      (v12.shaderDenormPreserveFloat64 || !with_doubles),
            .doubles_with_halves = with_doubles};
}

void read_properties(Traits& traits, VkPhysicalDevice device) {
    auto v13 = structure<VkPhysicalDeviceVulkan13Properties>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES);
    auto v11 = structure<VkPhysicalDeviceVulkan11Properties>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
    auto v12 = structure<VkPhysicalDeviceVulkan12Properties>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES, &v11);
    auto all = structure<VkPhysicalDeviceProperties2>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &v12);
    vkGetPhysicalDeviceProperties(device, &all.properties);
    if (all.properties.apiVersion >= VK_API_VERSION_1_3) v11.pNext = &v13;
    if (all.properties.apiVersion >= kVersion) vkGetPhysicalDeviceProperties2(device, &all);
    const VkPhysicalDeviceProperties& p = all.properties;
    traits.name = p.deviceName;
    traits.driver = std::string(v12.driverName) + " " + v12.driverInfo;
    for (uint8_t byte : v11.deviceUUID) {
        traits.uuid += "0123456789abcdef"[byte >> 4];
        traits.uuid += "0123456789abcdef"[byte & 15];
    }
    traits.type = p.deviceType;
    traits.driver_id = v12.driverID;
    traits.api_version = p.apiVersion;
    read_limits(traits, p.limits);
    traits.allocation_bytes = v11.maxMemoryAllocationSize;
    if (v13.maxBufferSize > 0)
        traits.allocation_bytes = std::min(traits.allocation_bytes, size_t(v13.maxBufferSize));
    traits.mixed_dot = v13.integerDotProduct4x8BitPackedMixedSignednessAccelerated;
    traits.float_controls = float_controls_of(v12);
    traits.subgroup_size = v11.subgroupSize;
    traits.subgroup_broadcast = (v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                                (v11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_BALLOT_BIT);
    traits.least_subgroup = v13.minSubgroupSize;
    traits.most_subgroup = v13.maxSubgroupSize;
    traits.requires_subgroups = v13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT;
    traits.most_subgroups = v13.maxComputeWorkgroupSubgroups;
}

// The shapes of cooperative matrices are queried only when a device is opened, because some drivers
// crash on the query.
void read_features(Traits& traits, VkPhysicalDevice device) {
    const std::set<std::string> extensions = extensions_of(device);
    CooperativeFeatures cooperative;
    auto v13 = structure<VkPhysicalDeviceVulkan13Features>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
    auto v12 = structure<VkPhysicalDeviceVulkan12Features>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
    auto v11 = structure<VkPhysicalDeviceVulkan11Features>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &v12);
    auto all =
        structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &v11);
    if (traits.api_version >= VK_API_VERSION_1_3) v12.pNext = &v13;
    if (extensions.count(kCooperativeExtension)) {
        cooperative.next = v12.pNext;
        v12.pNext = &cooperative;
    }
    vkGetPhysicalDeviceFeatures2(device, &all);
    traits.float16 = v12.shaderFloat16;
    traits.int8 = v12.shaderInt8;
    traits.device_scope = v12.vulkanMemoryModelDeviceScope;
    traits.storage8 = v12.storageBuffer8BitAccess;
    traits.storage16 = v11.storageBuffer16BitAccess;
    traits.buffer_address = v12.bufferDeviceAddress;
    traits.integer_dot = v13.shaderIntegerDotProduct;
    traits.subgroup_control = v13.subgroupSizeControl;
    traits.full_subgroups = v13.computeFullSubgroups;
    traits.cooperative_matrix = cooperative.matrix;
    traits.portability_subset = extensions.count("VK_KHR_portability_subset") > 0;
}

void read_queues(Traits& traits, VkPhysicalDevice device) {
    const auto families =
        enumerate<VkQueueFamilyProperties>([&](uint32_t* count, VkQueueFamilyProperties* to) {
            vkGetPhysicalDeviceQueueFamilyProperties(device, count, to);
        });
    traits.queue_family = choose_queue_family(families);
    if (!traits.queue_family) return;
    traits.timestamp_bits = families[*traits.queue_family].timestampValidBits;
    if (traits.timestamp_bits == 0) traits.timestamp_seconds = 0;
}

Traits read_traits(VkPhysicalDevice device) {
    Traits traits;
    read_properties(traits, device);
    vkGetPhysicalDeviceMemoryProperties(device, &traits.memory);
    for (uint32_t i = 0; i < traits.memory.memoryHeapCount; ++i) {
        const VkMemoryHeap& heap = traits.memory.memoryHeaps[i];
        if (heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            traits.memory_bytes = std::max(traits.memory_bytes, size_t(heap.size));
    }
    if (traits.api_version >= kVersion) read_features(traits, device);
    read_queues(traits, device);
    traits.missing = missing_of(traits);
    return traits;
}

}  // namespace

std::optional<uint32_t> choose_queue_family(std::span<const VkQueueFamilyProperties> families) {
    std::optional<uint32_t> chosen;
    for (uint32_t i = 0; i < families.size(); ++i) {
        if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
        if (!(families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT)) return i;
        if (!chosen) chosen = i;
    }
    return chosen;
}

// Checks what the shaders and pipelines.h assume where Vulkan guarantees less.
std::string missing_of(const Traits& traits) {
    if (traits.api_version < kVersion)
        return "it has Vulkan " + std::to_string(VK_API_VERSION_MAJOR(traits.api_version)) + "." +
               std::to_string(VK_API_VERSION_MINOR(traits.api_version)) + ", aerie needs 1.2";
    if (!traits.queue_family) return "it has no compute queue";
    // Drivers that count in less than 32 bits report 128 MiB less a byte.
    constexpr size_t kKiB = 1 << 10, kMiB = 1 << 20;
    const struct {
        size_t has, needs, unit;
        const char* what;
    } limits[] = {{traits.shared_bytes, 32 * kKiB, kKiB, " KiB of memory shared by a workgroup"},
                  {traits.group_size, 256, 1, " invocations in a workgroup"},
                  {traits.storage_buffers, kMaxBindings, 1, " storage buffers in a shader"},
                  {traits.storage_range, 128 * kMiB - 1, kMiB, " MiB in one binding"}};
    for (const auto& [has, needs, unit, what] : limits)
        if (has < needs)
            return "it has at most " + std::to_string(has / unit) + what + ", aerie needs " +
                   std::to_string((needs + unit - 1) / unit);
    return "";
}

std::shared_ptr<Instance> Instance::get(std::string* why) {
    static std::mutex mutex;
    static std::weak_ptr<Instance> shared;
    const std::lock_guard lock(mutex);
    std::shared_ptr<Instance> instance = shared.lock();
    if (instance) return instance;
    instance.reset(new Instance);
    if (const std::string problem = instance->open(); !problem.empty()) {
        if (why) *why = problem;
        return nullptr;
    }
    shared = instance;
    return instance;
}

std::string Instance::open() {
    if (volkInitialize() != VK_SUCCESS)
        return "there is no Vulkan loader: install libvulkan1 and your GPU's driver, such as "
               "mesa-vulkan-drivers";
    if (volkGetInstanceVersion() < kVersion)
        return "the Vulkan loader is older than 1.2: install a newer libvulkan1";
    bool portability = false;
    for (const VkExtensionProperties& e :
         enumerate<VkExtensionProperties>([](uint32_t*count, VkExtensionProperties*to) {
             vkEnumerateInstanceExtensionProperties(nullptr, count, to);
         }))
        portability |= !std::strcmp(e.extensionName, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    const char* extension = VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME;
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .pNext = nullptr,
                                           .pApplicationName = "aerie",
                                           .applicationVersion = 0,
                                           .pEngineName = "aerie",
                                           .engineVersion = 0,
                                           .apiVersion = VK_API_VERSION_1_3};
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = nullptr,
        .flags = portability ? uint32_t(VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR) : 0u,
        .pApplicationInfo = &application,
        .enabledLayerCount = 0,
        .ppEnabledLayerNames = nullptr,
        .enabledExtensionCount = portability ? 1u : 0u,
        .ppEnabledExtensionNames = &extension};
    if (const VkResult result = vkCreateInstance(&info, nullptr, &handle_); result != VK_SUCCESS) {
        handle_ = VK_NULL_HANDLE;
        return result == VK_ERROR_INCOMPATIBLE_DRIVER
                   ? "there is no Vulkan driver: install your GPU's, such as mesa-vulkan-drivers"
                   : "the Vulkan loader makes no instance (error " + std::to_string(result) + ")";
    }
    volkLoadInstanceOnly(handle_);
    for (VkPhysicalDevice device :
         enumerate<VkPhysicalDevice>([this](uint32_t*count, VkPhysicalDevice*to) {
             vkEnumeratePhysicalDevices(handle_, count, to);
         }))
        devices_.push_back({device, read_traits(device)});
    return "";
}

size_t find_device(const Instance& instance, const std::string& device) {
    const std::string wanted =
        device.substr(std::min(device.size(), std::string("vulkan:").size()));
    const auto& all = instance.devices();
    if (wanted.empty() && !all.empty()) return 0;
    for (size_t i = 0; i < all.size(); ++i)
        if (wanted == std::to_string(i) || wanted == all[i].traits.uuid) return i;
    const bool number =
        std::all_of(wanted.begin(), wanted.end(), [](unsigned char c) { return std::isdigit(c); });
    for (size_t i = 0; i < all.size() && !number; ++i)
        if (all[i].traits.name.find(wanted) != std::string::npos) return i;
    std::string known;
    for (size_t i = 0; i < all.size(); ++i)
        known += (i ? ", " : "") + std::to_string(i) + " (" + all[i].traits.name + ")";
    throw Error(device + ": there is no such Vulkan device" +
                (known.empty() ? "" : "; there is " + known));
}

Instance::~Instance() {
    if (handle_) vkDestroyInstance(handle_, nullptr);
}

}  // namespace aerie::vulkan
