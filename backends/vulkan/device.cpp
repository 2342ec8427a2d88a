// Opens a device with no more features than the shaders use.
#include "vulkan/device.h"

#include <algorithm>

#include "vulkan/check.h"

namespace aerie::vulkan {

namespace {

// Invocations that share an output row where the device needs many to be busy.
constexpr int kGpuSplit = 8;

Traits traits_for(Traits traits, const DeviceChoices& choices) {
    if (choices.pretend) choices.pretend(traits);
    traits.missing = missing_of(traits);
    return traits;
}

}  // namespace

Device::Device(std::shared_ptr<Instance> instance, size_t index, const DeviceChoices& choices)
    : instance_(std::move(instance)),
      physical_(instance_->devices().at(index).handle),
      traits_(traits_for(instance_->devices().at(index).traits, choices)),
      name_("vulkan:" + std::to_string(index)),
      unified_(traits_.unified() && choices.allow_unified),
      integer_dot_(traits_.integer_dot && choices.allow_integer_dot),
      cache_(choices.cache),
      quiet_seconds_(choices.quiet_seconds),
      on_progress_(choices.on_progress),
      split_(choices.split                                 ? choices.split
             : traits_.type == VK_PHYSICAL_DEVICE_TYPE_CPU ? 1
                                                           : kGpuSplit),
      submission_work_(choices.submission_work),
      profile_(choices.profile && traits_.timestamp_seconds > 0) {
    if (!traits_.missing.empty())
        throw Error(name_ + ": " + traits_.name + " cannot run aerie: " + traits_.missing);
    if (choices.cooperative_matrices.value_or(trusts_matrices(traits_)))
        matrices_ = ask_for_matrices(instance_->handle(), physical_, traits_);
    create();
    volkLoadDeviceTable(&vk, handle);
    if (choices.patch) choices.patch(vk);
    vk.vkGetDeviceQueue(handle, *traits_.queue_family, 0, &queue);
}

void Device::create() {
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue_info = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                                .pNext = nullptr,
                                                .flags = 0,
                                                .queueFamilyIndex = *traits_.queue_family,
                                                .queueCount = 1,
                                                .pQueuePriorities = &priority};
    auto v13 = structure<VkPhysicalDeviceVulkan13Features>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
    v13.shaderIntegerDotProduct = VK_TRUE;
    auto v12 = structure<VkPhysicalDeviceVulkan12Features>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, integer_dot_ ? &v13 : nullptr);
    CooperativeFeatures cooperative = {.next = v12.pNext};
    cooperative.matrix = VK_TRUE;
    v12.vulkanMemoryModel = v12.vulkanMemoryModelDeviceScope = VK_TRUE;
    v12.shaderFloat16 = bool(matrix_shape(DType::F16));
    v12.shaderInt8 = bool(matrix_shape(DType::Q8_0));
    v12.pNext = &cooperative;
    std::vector<const char*> extensions;
    if (traits_.portability_subset) extensions.push_back("VK_KHR_portability_subset");
    const bool multiplies = v12.shaderFloat16 || v12.shaderInt8;
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
        throw Error(name_ + ": cannot open " + traits_.name + ": " + describe(result));
}

MatrixShape Device::matrix_shape(DType weight) const {
    return weight == DType::F16   ? matrices_.f16
           : is_quantised(weight) ? matrices_.s8
                                  : MatrixShape();
}

// Drivers that run shaders on a CPU read an address that all share once for each of them. llvmpipe
// has no more than 16 invocations side by side, whatever it says.
uint32_t Device::fetch_lanes() const {
    const uint32_t lanes = std::min(traits_.subgroup_size, 16u);
    const bool able = traits_.subgroup_broadcast && integer_dot_ && split_ == 1 && lanes >= 4;
    return able && traits_.type == VK_PHYSICAL_DEVICE_TYPE_CPU ? lanes : 0;
}

// Those drivers take longer for it than for integer code.
bool Device::reads_halves() const {
    return traits_.float_controls.halves && traits_.type != VK_PHYSICAL_DEVICE_TYPE_CPU;
}

Device::~Device() {
    if (handle) vk.vkDestroyDevice(handle, nullptr);
}

// Ticks begin anew beyond their bits.
double Device::seconds_between(uint64_t begin, uint64_t end) const {
    const uint64_t ticks = (end - begin) & (~uint64_t(0) >> (64 - traits_.timestamp_bits));
    return double(ticks) * traits_.timestamp_seconds;
}

}  // namespace aerie::vulkan
