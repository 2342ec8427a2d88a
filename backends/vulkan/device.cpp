// Opens a device with no more features than the shaders use.
#include "vulkan/device.h"

#include <algorithm>

#include "vulkan/check.h"

namespace aerie::vulkan {

namespace {

std::string name_of(size_t index) {
    return "vulkan:" + std::to_string(index);
}

Abilities abilities_of(const Instance& instance, size_t index, const DeviceChoices& choices) {
    const auto& [handle, found] = instance.devices().at(index);
    Traits traits = found;
    if (choices.pretend) choices.pretend(traits);
    traits.missing = missing_of(traits);
    if (!traits.missing.empty())
        throw Error(name_of(index) + ": " + traits.name + " cannot run aerie: " + traits.missing,
                    Cause::no_device);
    Matrices matrices;
    if (choices.cooperative_matrices.value_or(uses_matrices(traits)))
        matrices = ask_for_matrices(instance.handle(), handle, traits);
    return {traits, matrices, choices.allow_integer_dot, choices.split};
}

}  // namespace

Device::Device(std::shared_ptr<Instance> instance, size_t index, const DeviceChoices& choices)
    : Abilities(abilities_of(*instance, index, choices)),
      instance_(std::move(instance)),
      physical_(instance_->devices()[index].handle),
      name_(name_of(index)),
      unified_(traits().unified() && choices.allow_unified),
      cache_(choices.cache),
      quiet_seconds_(choices.quiet_seconds),
      on_progress_(choices.on_progress),
      submission_work_(choices.submission_work),
      profile_(choices.profile && traits().timestamp_seconds > 0) {
    create();
    volkLoadDeviceTable(&vk, handle);
    if (choices.patch) choices.patch(vk);
    vk.vkGetDeviceQueue(handle, *traits().queue_family, 0, &queue);
}

void Device::create() {
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue_info = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                                .pNext = nullptr,
                                                .flags = 0,
                                                .queueFamilyIndex = *traits().queue_family,
                                                .queueCount = 1,
                                                .pQueuePriorities = &priority};
    auto v13 = structure<VkPhysicalDeviceVulkan13Features>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
    v13.shaderIntegerDotProduct = integer_dot();
    const bool multiplies = matrices().f16 || matrices().s8;
    v13.subgroupSizeControl = v13.computeFullSubgroups =
        multiplies && required_subgroup(traits()) > 0;
    const bool uses_13 = integer_dot() || v13.subgroupSizeControl;
    auto v12 = structure<VkPhysicalDeviceVulkan12Features>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, uses_13 ? &v13 : nullptr);
    CooperativeFeatures cooperative = {.next = v12.pNext};
    cooperative.matrix = VK_TRUE;
    v12.vulkanMemoryModel = v12.vulkanMemoryModelDeviceScope = VK_TRUE;
    v12.shaderFloat16 = bool(matrix_shape(DType::F16));
    v12.shaderInt8 = bool(matrix_shape(DType::Q8_0));
    v12.pNext = &cooperative;
    std::vector<const char*> extensions;
    if (traits().portability_subset) extensions.push_back("VK_KHR_portability_subset");
    if (multiplies) extensions.push_back(kCooperativeExtension);
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = multiplies ? &v12 : cooperative.next,
                                     .flags = 0,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue_info,
                                     .enabledLayerCount = 0,
                                     .ppEnabledLayerNames = nullptr,
                                     .enabledExtensionCount = uint32_t(extensions.size()),
                                     .ppEnabledExtensionNames = extensions.data(),
                                     .pEnabledFeatures = nullptr};
    const VkResult result = vkCreateDevice(physical_, &info, nullptr, &handle);
    if (result != VK_SUCCESS)
        throw Error(name_ + ": cannot open " + traits().name + ": " + describe(result),
                    Cause::no_device);
}

Device::~Device() {
    if (handle) vk.vkDestroyDevice(handle, nullptr);
}

// Timestamps wrap around after timestamp_bits bits.
double Device::seconds_between(uint64_t begin, uint64_t end) const {
    const uint64_t ticks = (end - begin) & (~uint64_t(0) >> (64 - traits().timestamp_bits));
    return double(ticks) * traits().timestamp_seconds;
}

}  // namespace aerie::vulkan
