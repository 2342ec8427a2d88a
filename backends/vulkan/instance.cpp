// Finds devices and reads what they can do.
#define VOLK_IMPLEMENTATION
#include "vulkan/instance.h"

#include <cstring>
#include <mutex>
#include <set>

#include "vulkan/check.h"
#include "vulkan/shaders.h"

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

void read_properties(Traits& traits, VkPhysicalDevice device) {
    auto control = structure<VkPhysicalDeviceSubgroupSizeControlProperties>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
    auto v11 = structure<VkPhysicalDeviceVulkan11Properties>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
    auto v12 = structure<VkPhysicalDeviceVulkan12Properties>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES, &v11);
    auto all = structure<VkPhysicalDeviceProperties2>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &v12);
    vkGetPhysicalDeviceProperties(device, &all.properties);
    if (all.properties.apiVersion >= VK_API_VERSION_1_3) v11.pNext = &control;
    if (all.properties.apiVersion >= kVersion) vkGetPhysicalDeviceProperties2(device, &all);
    const VkPhysicalDeviceProperties& p = all.properties;
    traits.name = p.deviceName;
    traits.driver = std::string(v12.driverName) + " " + v12.driverInfo;
    for (uint8_t byte : v11.deviceUUID) {
        traits.uuid += "0123456789abcdef"[byte >> 4];
        traits.uuid += "0123456789abcdef"[byte & 15];
    }
    traits.type = p.deviceType;
    traits.api_version = p.apiVersion;
    traits.storage_range = p.limits.maxStorageBufferRange;
    traits.offset_alignment = p.limits.minStorageBufferOffsetAlignment;
    traits.allocation_bytes = v11.maxMemoryAllocationSize;
    traits.shared_bytes = p.limits.maxComputeSharedMemorySize;
    traits.subgroup_size = v11.subgroupSize;
    traits.subgroup_broadcast = (v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                                (v11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_BALLOT_BIT);
    traits.least_subgroup = control.minSubgroupSize;
    traits.most_subgroup = control.maxSubgroupSize;
    traits.timestamp_seconds =
        p.limits.timestampComputeAndGraphics ? p.limits.timestampPeriod * 1e-9f : 0;
}

// What the shader of cooperative matrices needs beside them.
void read_matrices(Traits& traits, VkInstance instance, VkPhysicalDevice device,
                   const VkPhysicalDeviceVulkan12Features& v12) {
    if (!has_matrix_shaders() || !traits.cooperative_matrix || !v12.vulkanMemoryModelDeviceScope ||
        kCooperativeInvocations % traits.widest_subgroup())
        return;
    const auto all = cooperative_properties(instance, device);
    if (v12.shaderFloat16)
        traits.f16_matrix = matmul_shape(all, ComponentType::f16, ComponentType::f32);
    if (v12.shaderInt8) traits.s8_matrix = matmul_shape(all, ComponentType::s8, ComponentType::s32);
}

void read_features(Traits& traits, VkInstance instance, VkPhysicalDevice device) {
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
    traits.storage8 = v12.storageBuffer8BitAccess;
    traits.storage16 = v11.storageBuffer16BitAccess;
    traits.buffer_address = v12.bufferDeviceAddress;
    traits.integer_dot = v13.shaderIntegerDotProduct;
    traits.subgroup_control = v13.subgroupSizeControl;
    traits.cooperative_matrix = cooperative.matrix;
    read_matrices(traits, instance, device, v12);
    traits.portability_subset = extensions.count("VK_KHR_portability_subset") > 0;
}

// A family that computes; one without graphics if there is a choice.
bool choose_queue_family(Traits& traits, VkPhysicalDevice device) {
    const auto families =
        enumerate<VkQueueFamilyProperties>([&](uint32_t* count, VkQueueFamilyProperties* to) {
            vkGetPhysicalDeviceQueueFamilyProperties(device, count, to);
        });
    bool found = false;
    for (uint32_t i = 0; i < families.size(); ++i) {
        if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
        if (found && (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT)) continue;
        if (families[i].timestampValidBits == 0) traits.timestamp_seconds = 0;
        traits.queue_family = i;
        if (found) break;
        found = true;
    }
    return found;
}

Traits read_traits(VkInstance instance, VkPhysicalDevice device) {
    Traits traits;
    read_properties(traits, device);
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(device, &memory);
    for (uint32_t i = 0; i < memory.memoryHeapCount; ++i)
        if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            traits.memory_bytes = std::max(traits.memory_bytes, size_t(memory.memoryHeaps[i].size));
    if (traits.api_version < kVersion)
        traits.missing =
            "it has Vulkan " + std::to_string(VK_API_VERSION_MAJOR(traits.api_version)) + "." +
            std::to_string(VK_API_VERSION_MINOR(traits.api_version)) + ", aerie needs 1.2";
    else
        read_features(traits, instance, device);
    if (!choose_queue_family(traits, device)) traits.missing = "it has no compute queue";
    return traits;
}

}  // namespace

std::shared_ptr<Instance> Instance::get() {
    static std::mutex mutex;
    static std::weak_ptr<Instance> shared;
    const std::lock_guard lock(mutex);
    std::shared_ptr<Instance> instance = shared.lock();
    if (instance) return instance;
    instance.reset(new Instance);
    if (!instance->open()) return nullptr;
    shared = instance;
    return instance;
}

bool Instance::open() {
    if (volkInitialize() != VK_SUCCESS || volkGetInstanceVersion() < kVersion) return false;
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
    if (vkCreateInstance(&info, nullptr, &handle_) != VK_SUCCESS) return false;
    volkLoadInstanceOnly(handle_);
    for (VkPhysicalDevice device :
         enumerate<VkPhysicalDevice>([this](uint32_t*count, VkPhysicalDevice*to) {
             vkEnumeratePhysicalDevices(handle_, count, to);
         }))
        devices_.push_back({device, read_traits(handle_, device)});
    return true;
}

Instance::~Instance() {
    if (handle_) vkDestroyInstance(handle_, nullptr);
}

}  // namespace aerie::vulkan
