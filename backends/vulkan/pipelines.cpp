// Compiles a pipeline in the background when it is first asked for. A caller that needs it at once
// waits for this pipeline alone.
#include "vulkan/pipelines.h"

#include <algorithm>
#include <thread>

#include "vulkan/check.h"
#include "vulkan/float_controls.h"
#include "vulkan/pipeline_file.h"
#include "vulkan/shared_memory.h"

namespace aerie::vulkan {

using namespace std::chrono_literals;

namespace {

template <class Future>
bool is_ready(const Future& future, std::chrono::milliseconds within) {
    return future.wait_for(within) == std::future_status::ready;
}

}  // namespace

Pipelines::Pipelines(std::shared_ptr<Device> device, std::span<const Shader> shaders)
    : device_(std::move(device)),
      shaders_(shaders),
      threads_(std::max(1u, std::thread::hardware_concurrency())) {
    create_layout();
    std::vector<char> stored;
    if (!device_->cache().empty()) {
        cache_path_ = pipeline_file_path(device_->cache(), device_->traits());
        stored = read_pipeline_file(cache_path_);
        cached_ = !stored.empty();
    }
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                      .pNext = nullptr,
                                      .flags = 0,
                                      .initialDataSize = stored.size(),
                                      .pInitialData = stored.data()};
    VkPipelineCache cache;
    VK_CHECK(*device_, vkCreatePipelineCache, device_->handle, &info, nullptr, &cache);
    cache_ = {*device_, cache};
}

Pipelines::~Pipelines() {
    for (const auto& [kernel, pipeline] : pipelines_) pipeline.wait();
    save();
}

void Pipelines::create_layout() {
    std::array<VkDescriptorSetLayoutBinding, kMaxBindings> bindings = {};
    for (uint32_t i = 0; i < kMaxBindings; ++i) {
        bindings[i].binding = i;
        bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        bindings[i].descriptorCount = 1;
        bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    const VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .pNext = nullptr,
        .flags = 0,
        .bindingCount = kMaxBindings,
        .pBindings = bindings.data()};
    VkDescriptorSetLayout set_layout;
    VK_CHECK(*device_, vkCreateDescriptorSetLayout, device_->handle, &set_info, nullptr,
             &set_layout);
    set_layout_ = {*device_, set_layout};
    const VkPushConstantRange push = {
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .offset = 0, .size = kPushBytes};
    const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .pNext = nullptr,
                                             .flags = 0,
                                             .setLayoutCount = 1,
                                             .pSetLayouts = &set_layout,
                                             .pushConstantRangeCount = 1,
                                             .pPushConstantRanges = &push};
    VkPipelineLayout layout;
    VK_CHECK(*device_, vkCreatePipelineLayout, device_->handle, &info, nullptr, &layout);
    layout_ = {*device_, layout};
}

VkPipeline Pipelines::find(const Kernel& kernel) {
    auto found = pipelines_.find(kernel);
    if (found == pipelines_.end()) {
        const auto work = [this, kernel, module = module_of(kernel.shader)] {
            return compile(kernel, module);
        };
        found = pipelines_.emplace(kernel, std::async(std::launch::async, work)).first;
        asked_ = std::chrono::steady_clock::now();
    }
    return is_ready(found->second, 0ms) ? VkPipeline(found->second.get()) : VK_NULL_HANDLE;
}

VkPipeline Pipelines::wait_for(const Kernel& kernel) {
    const Compiling& pipeline = pipelines_.at(kernel);
    while (!is_ready(pipeline, 50ms))
        if (!cached_)
            device_->say("compiling shaders for " + device_->traits().name +
                         ", the first time only: " + std::to_string(compiled_) + " of " +
                         std::to_string(pipelines_.size()));
    return pipeline.get();
}

VkShaderModule Pipelines::module_of(const char* name) {
    const auto found = modules_.find(name);
    if (found != modules_.end()) return found->second;
    const Shader* shader = find_shader(name, shaders_);
    if (!shader) throw Error(std::string("this build has no shader ") + name);
    const std::vector<uint32_t> words =
        with_float_controls(ordered_by_barriers(shader->words), device_->traits().float_controls);
    const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .pNext = nullptr,
                                           .flags = 0,
                                           .codeSize = words.size() * sizeof(uint32_t),
                                           .pCode = words.data()};
    VkShaderModule module;
    VK_CHECK(*device_, vkCreateShaderModule, device_->handle, &info, nullptr, &module);
    return modules_[name] = {*device_, module};
}

// Runs on a thread of its own; at most as many compile at a time as the machine has hardware
// threads.
OwnedPipeline Pipelines::compile(const Kernel& kernel, VkShaderModule module) {
    std::array<uint32_t, kMaxConstants + 1> constants;
    std::array<VkSpecializationMapEntry, kMaxConstants + 1> entries;
    std::ranges::copy(kernel.constants, constants.begin());
    constants[kMaxConstants] = device_->reads_halves();  // kReadsHalves of lib/half.glsl
    for (uint32_t i = 0; i <= kMaxConstants; ++i) entries[i] = {i, i * 4, 4};
    const VkSpecializationInfo special = {.mapEntryCount = uint32_t(entries.size()),
                                          .pMapEntries = entries.data(),
                                          .dataSize = sizeof(constants),
                                          .pData = constants.data()};
    constexpr VkPipelineShaderStageCreateFlags kWhole =
        VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    auto width = structure<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO);
    width.requiredSubgroupSize = kernel.subgroup;
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .pNext = nullptr,
        .flags = VK_PIPELINE_CREATE_DISPATCH_BASE_BIT,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = kernel.subgroup ? &width : nullptr,
                  .flags = kernel.subgroup ? kWhole : 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = &special},
        .layout = layout_,
        .basePipelineHandle = VK_NULL_HANDLE,
        .basePipelineIndex = 0};
    VkPipeline pipeline;
    threads_.take();
    const VkResult result =
        device_->vk.vkCreateComputePipelines(device_->handle, cache_, 1, &info, nullptr, &pipeline);
    threads_.give();
    ++compiled_;
    check(device_->name(), result, "vkCreateComputePipelines");
    return {*device_, pipeline};
}

void Pipelines::save_when_quiet() {
    const std::chrono::duration<double> quiet = std::chrono::steady_clock::now() - asked_;
    if (saved_ == pipelines_.size() || compiled_ < pipelines_.size() ||
        quiet.count() < device_->quiet_seconds())
        return;
    save();
    saved_ = pipelines_.size();  // also if the file could not be written
}

void Pipelines::save() {
    if (cache_path_.empty() || saved_ == pipelines_.size()) return;
    const VolkDeviceTable& vk = device_->vk;
    size_t size = 0;
    if (vk.vkGetPipelineCacheData(device_->handle, cache_, &size, nullptr) != VK_SUCCESS) return;
    std::vector<char> data(size);
    if (vk.vkGetPipelineCacheData(device_->handle, cache_, &size, data.data()) != VK_SUCCESS)
        return;
    data.resize(size);
    write_pipeline_file(cache_path_, data);
    saved_ = pipelines_.size();
}

}  // namespace aerie::vulkan
