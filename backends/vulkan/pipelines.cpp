// Compiles a pipeline when it is first asked for.
#include "vulkan/pipelines.h"

#include <algorithm>

#include "vulkan/check.h"
#include "vulkan/pipeline_file.h"
#include "vulkan/shaders.h"

namespace aerie::vulkan {

Pipelines::Pipelines(std::shared_ptr<Device> device) : device_(std::move(device)) {
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
    VK_CHECK(device_->vk.vkCreatePipelineCache(device_->handle, &info, nullptr, &cache_));
}

Pipelines::~Pipelines() {
    save();
    const VolkDeviceTable& vk = device_->vk;
    for (const auto& [kernel, pipeline] : pipelines_)
        vk.vkDestroyPipeline(device_->handle, pipeline, nullptr);
    for (const auto& [name, module] : modules_)
        vk.vkDestroyShaderModule(device_->handle, module, nullptr);
    vk.vkDestroyPipelineCache(device_->handle, cache_, nullptr);
    vk.vkDestroyPipelineLayout(device_->handle, layout_, nullptr);
    vk.vkDestroyDescriptorSetLayout(device_->handle, set_layout_, nullptr);
}

void Pipelines::create_layout() {
    const VolkDeviceTable& vk = device_->vk;
    std::array<VkDescriptorSetLayoutBinding, kMostBindings> bindings = {};
    for (uint32_t i = 0; i < kMostBindings; ++i) {
        bindings[i].binding = i;
        bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        bindings[i].descriptorCount = 1;
        bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    const VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .pNext = nullptr,
        .flags = 0,
        .bindingCount = kMostBindings,
        .pBindings = bindings.data()};
    VK_CHECK(vk.vkCreateDescriptorSetLayout(device_->handle, &set_info, nullptr, &set_layout_));
    const VkPushConstantRange push = {
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .offset = 0, .size = kPushBytes};
    const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .pNext = nullptr,
                                             .flags = 0,
                                             .setLayoutCount = 1,
                                             .pSetLayouts = &set_layout_,
                                             .pushConstantRangeCount = 1,
                                             .pPushConstantRanges = &push};
    VK_CHECK(vk.vkCreatePipelineLayout(device_->handle, &info, nullptr, &layout_));
}

VkPipeline Pipelines::get(const Kernel& kernel) {
    const auto found = pipelines_.find(kernel);
    if (found != pipelines_.end()) return found->second;
    return pipelines_[kernel] = compile(kernel);
}

VkPipeline Pipelines::compile(const Kernel& kernel) {
    const VolkDeviceTable& vk = device_->vk;
    VkShaderModule& module = modules_[kernel.shader];
    if (!module) {
        const std::span<const Shader> all = shaders();
        const auto shader = std::find_if(all.begin(), all.end(), [&](const Shader& s) {
            return std::string_view(s.name) == kernel.shader;
        });
        if (shader == all.end())
            throw Error(std::string("this build has no shader ") + kernel.shader);
        const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                               .pNext = nullptr,
                                               .flags = 0,
                                               .codeSize = shader->words.size_bytes(),
                                               .pCode = shader->words.data()};
        VK_CHECK(vk.vkCreateShaderModule(device_->handle, &info, nullptr, &module));
    }
    std::array<VkSpecializationMapEntry, kMostConstants> entries;
    for (uint32_t i = 0; i < kMostConstants; ++i) entries[i] = {i, i * 4, 4};
    const VkSpecializationInfo special = {.mapEntryCount = kMostConstants,
                                          .pMapEntries = entries.data(),
                                          .dataSize = sizeof(kernel.constants),
                                          .pData = kernel.constants.data()};
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .pNext = nullptr,
        .flags = 0,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = nullptr,
                  .flags = 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = &special},
        .layout = layout_,
        .basePipelineHandle = VK_NULL_HANDLE,
        .basePipelineIndex = 0};
    VkPipeline pipeline = VK_NULL_HANDLE;
    VK_CHECK(vk.vkCreateComputePipelines(device_->handle, cache_, 1, &info, nullptr, &pipeline));
    return pipeline;
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
