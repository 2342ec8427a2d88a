// The functions that replace those of the table.
#include "vulkan/fault_table.h"

#include <cstring>
#include <mutex>
#include <tuple>

namespace aerie::vulkan {

FaultRecord& fault_record() {
    static FaultRecord record;
    return record;
}

namespace {

// Pipelines are made by several threads at once.
std::mutex& record_mutex() {
    static std::mutex mutex;
    return mutex;
}

// Whether this call fails. A lost device stays lost; memory may be there again.
bool strikes(const char* function) {
    const std::lock_guard lock(record_mutex());
    FaultRecord& record = fault_record();
    const Fault& fault = record.fault;
    const long call = record.calls[function]++;
    if (record.struck) return fault.result == VK_ERROR_DEVICE_LOST;
    record.struck = fault.function == function && call == fault.call;
    return record.struck;
}

void count(const char* kind, int change) {
    const std::lock_guard lock(record_mutex());
    fault_record().alive[kind] += change;
}

// The result of a function that fails is not defined, so it is filled with a bad handle.
template <class T>
void spoil_handle(T** handle) {
    *handle = reinterpret_cast<T*>(~uintptr_t(0) / 3);
}
template <class Other>
void spoil_handle(const Other&) {}

template <auto Member>
struct Hook;

// `makes`: the kind of handle that the last argument points to, if any.
template <class... Args, VkResult (*VolkDeviceTable::*Member)(Args...)>
struct Hook<Member> {
    static inline const char *name, *makes;
    static inline VkResult (*real)(Args...);

    static VkResult call(Args... args) {
        const bool fails = strikes(name);
        // Nothing may still run on the device when a wait has failed and all is destroyed.
        const bool waits = std::strstr(name, "Wait");
        const VkResult result = fails && !waits ? VK_SUCCESS : real(args...);
        if (fails) (spoil_handle(args), ...);
        if (fails) return fault_record().fault.result;
        if (makes && result == VK_SUCCESS) count(makes, 1);
        return result;
    }
};

// A function that destroys a handle of kind `makes`; null is not counted.
template <class... Args, void (*VolkDeviceTable::*Member)(Args...)>
struct Hook<Member> {
    static inline const char *name, *makes;
    static inline void (*real)(Args...);

    static void call(Args... args) {
        constexpr size_t kHandle = sizeof...(Args) - 2;  // the argument before the allocator
        if (std::get<kHandle>(std::tuple<Args...>(args...))) count(makes, -1);
        real(args...);
    }
};

template <auto Member>
void hook(VolkDeviceTable& vk, const char* name, const char* makes = nullptr) {
    using This = Hook<Member>;
    This::name = name;
    This::makes = makes;
    This::real = vk.*Member;
    vk.*Member = This::call;
}

template <auto Create, auto Destroy>
void hook_pair(VolkDeviceTable& vk, const char* create, const char* kind) {
    hook<Create>(vk, create, kind);
    hook<Destroy>(vk, "", kind);
}

}  // namespace

void patch_with_faults(VolkDeviceTable& vk) {
    using T = VolkDeviceTable;
    // No fence is ever signalled before it is waited for: otherwise the number of calls would
    // depend on how fast the device is.
    vk.vkGetFenceStatus = [](VkDevice, VkFence) { return VK_NOT_READY; };
    ++fault_record().alive["Device"];
    hook<&T::vkDestroyDevice>(vk, "", "Device");
    hook_pair<&T::vkAllocateMemory, &T::vkFreeMemory>(vk, "vkAllocateMemory", "Memory");
    hook_pair<&T::vkCreateBuffer, &T::vkDestroyBuffer>(vk, "vkCreateBuffer", "Buffer");
    hook_pair<&T::vkCreateFence, &T::vkDestroyFence>(vk, "vkCreateFence", "Fence");
    hook_pair<&T::vkCreateCommandPool, &T::vkDestroyCommandPool>(vk, "vkCreateCommandPool",
                                                                 "CommandPool");
    hook_pair<&T::vkAllocateCommandBuffers, &T::vkFreeCommandBuffers>(
        vk, "vkAllocateCommandBuffers", "CommandBuffer");
    hook_pair<&T::vkCreateDescriptorPool, &T::vkDestroyDescriptorPool>(vk, "vkCreateDescriptorPool",
                                                                       "DescriptorPool");
    hook_pair<&T::vkCreateDescriptorSetLayout, &T::vkDestroyDescriptorSetLayout>(
        vk, "vkCreateDescriptorSetLayout", "DescriptorSetLayout");
    hook_pair<&T::vkCreatePipelineLayout, &T::vkDestroyPipelineLayout>(vk, "vkCreatePipelineLayout",
                                                                       "PipelineLayout");
    hook_pair<&T::vkCreatePipelineCache, &T::vkDestroyPipelineCache>(vk, "vkCreatePipelineCache",
                                                                     "PipelineCache");
    hook_pair<&T::vkCreateShaderModule, &T::vkDestroyShaderModule>(vk, "vkCreateShaderModule",
                                                                   "ShaderModule");
    hook_pair<&T::vkCreateComputePipelines, &T::vkDestroyPipeline>(vk, "vkCreateComputePipelines",
                                                                   "Pipeline");
    hook_pair<&T::vkCreateQueryPool, &T::vkDestroyQueryPool>(vk, "vkCreateQueryPool", "QueryPool");
    hook<&T::vkAllocateDescriptorSets>(vk, "vkAllocateDescriptorSets");
    hook<&T::vkResetDescriptorPool>(vk, "vkResetDescriptorPool");
    hook<&T::vkBindBufferMemory>(vk, "vkBindBufferMemory");
    hook<&T::vkMapMemory>(vk, "vkMapMemory");
    hook<&T::vkBeginCommandBuffer>(vk, "vkBeginCommandBuffer");
    hook<&T::vkEndCommandBuffer>(vk, "vkEndCommandBuffer");
    hook<&T::vkQueueSubmit>(vk, "vkQueueSubmit");
    hook<&T::vkWaitForFences>(vk, "vkWaitForFences");
    hook<&T::vkResetFences>(vk, "vkResetFences");
    hook<&T::vkDeviceWaitIdle>(vk, "vkDeviceWaitIdle");
    hook<&T::vkGetQueryPoolResults>(vk, "vkGetQueryPoolResults");
    hook<&T::vkGetPipelineCacheData>(vk, "vkGetPipelineCacheData");
}

}  // namespace aerie::vulkan
