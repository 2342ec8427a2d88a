// Compiles every kernel that the product asks for with a driver's compiler, without a device:
// models of random weights run on a driver that compiles for a card that is not there (RADV's null
// device), and nothing is submitted. Prints a line of JSON for the device, for each kernel (its
// constants, the invocations of a workgroup, the driver's statistics, its machine code), and for
// each pass its dispatches: kernel, grid, and whether a barrier stands before it.
//
//   kernel_code                     narrow models in every type
//   kernel_code SHAPE LAYERS TYPE   a model of this shape, for tools/dev/model_gpu.py
//   kernel_code NAME=FILE,1,8...    modules of SPIR-V, with constants
#include <volk.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "core/error.h"
#include "engine/model.h"
#include "io/input_file.h"
#include "model/make/shapes.h"
#include "vulkan/backend.h"
#include "vulkan/check.h"
#include "vulkan/device.h"
#include "vulkan/float_controls.h"
#include "vulkan/pipelines.h"
#include "vulkan/shaders.h"
#include "vulkan/shared_memory.h"
#include "vulkan/vulkan_backend.h"

namespace aerie::vulkan {
namespace {

// Vulkan's functions have no closure.
VolkDeviceTable real;
PFN_vkCreateDevice real_create_device;
Traits traits_of_device;
std::mutex guard;
struct Module {
    std::string name;
    std::vector<uint32_t> words;
};
std::map<VkShaderModule, Module> modules;
std::map<std::string, uintptr_t> kernels;  // "matmul_q4_0_dot 1 8": its number, from 1
std::string commands;                      // dispatches of the pass that is recorded
bool after_barrier = false;

std::string json_string(const std::string& text) {
    std::string out = "\"";
    for (const char c : text)
        if (c == '"' || c == '\\')
            (out += '\\') += c;
        else if (c == '\n')
            out += "\\n";
        else
            out += c < ' ' ? ' ' : c;
    return out + '"';
}

// Enables the statistics and the code of the compiler on every device.
VkResult create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                       const VkAllocationCallbacks* with, VkDevice* made) {
    auto telling = structure<VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
        const_cast<void*>(info->pNext));
    telling.pipelineExecutableInfo = VK_TRUE;
    std::vector<const char*> extensions(
        info->ppEnabledExtensionNames, info->ppEnabledExtensionNames + info->enabledExtensionCount);
    extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    VkDeviceCreateInfo more = *info;
    more.pNext = &telling;
    more.enabledExtensionCount = uint32_t(extensions.size());
    more.ppEnabledExtensionNames = extensions.data();
    return real_create_device(physical, &more, with, made);
}

VkResult create_module(VkDevice handle, const VkShaderModuleCreateInfo* info,
                       const VkAllocationCallbacks* with, VkShaderModule* made) {
    const VkResult result = real.vkCreateShaderModule(handle, info, with, made);
    for (const Shader& shader : all_shaders()) {
        const auto words =
            with_float_controls(ordered_by_barriers(shader.words), traits_of_device.float_controls);
        if (words.size() * 4 != info->codeSize ||
            std::memcmp(words.data(), info->pCode, info->codeSize) != 0)
            continue;
        const std::lock_guard lock(guard);
        modules[*made] = {shader.name, words};
    }
    return result;
}

// Invocations of a workgroup: the product of the constants decorated as WorkgroupSize if they are
// specialised, else that of the execution mode.
uint32_t invocations_of(std::span<const uint32_t> words, std::span<const uint32_t> constants) {
    constexpr size_t kHeader = 5;
    constexpr uint32_t kMode = 16, kConstant = 43, kSpecial = 50, kDecorate = 71, kLocalSize = 17,
                       kSpecId = 1, kBuiltIn = 11, kWorkgroupSize = 25;
    std::map<uint32_t, uint32_t> values, numbers;  // values of constants; SpecIds; both by id
    uint32_t size_id = 0, size = 1;
    for (size_t i = kHeader; i < words.size(); i += words[i] >> 16) {
        const uint32_t op = words[i] & 0xffff;
        const uint32_t* w = &words[i];
        if (op == kMode && w[2] == kLocalSize) size = w[3] * w[4] * w[5];
        if (op == kDecorate && w[2] == kSpecId) numbers[w[1]] = w[3];
        if (op == kDecorate && w[2] == kBuiltIn && w[3] == kWorkgroupSize) size_id = w[1];
        if (op == kConstant) values[w[2]] = w[3];
        if (op == kSpecial) {
            const auto number = numbers.find(w[2]);
            const bool given = number != numbers.end() && number->second < constants.size();
            values[w[2]] = given ? constants[number->second] : w[3];
        }
        if (size_id && (w[0] >> 16) == 6 && w[2] == size_id)  // a composite of three
            size = values[w[3]] * values[w[4]] * values[w[5]];
    }
    return size;
}

template <class T, class Get>
std::vector<T> enumerate(VkStructureType type, const Get& get) {
    uint32_t count = 0;
    get(&count, nullptr);
    std::vector<T> all(count, structure<T>(type));
    get(&count, all.data());
    return all;
}

double value_of(const VkPipelineExecutableStatisticKHR& s) {
    switch (s.format) {
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
            return s.value.b32;
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
            return double(s.value.i64);
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
            return double(s.value.u64);
        default:
            return s.value.f64;
    }
}

std::string code_of(VkDevice handle, const VkPipelineExecutableInfoKHR& info) {
    auto all = enumerate<VkPipelineExecutableInternalRepresentationKHR>(
        VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR,
        [&](uint32_t* count, VkPipelineExecutableInternalRepresentationKHR* to) {
            real.vkGetPipelineExecutableInternalRepresentationsKHR(handle, &info, count, to);
        });
    std::string text;
    if (all.empty()) return text;
    VkPipelineExecutableInternalRepresentationKHR& last = all.back();  // nearest to the machine
    text.resize(last.dataSize);
    last.pData = text.data();
    uint32_t count = uint32_t(all.size());
    real.vkGetPipelineExecutableInternalRepresentationsKHR(handle, &info, &count, all.data());
    return text.c_str();
}

void print_kernel(VkDevice handle, VkPipeline pipeline, const std::string& name, uintptr_t number,
                  uint32_t invocations) {
    auto which = structure<VkPipelineInfoKHR>(VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR);
    which.pipeline = pipeline;
    const auto executables = enumerate<VkPipelineExecutablePropertiesKHR>(
        VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR,
        [&](uint32_t* count, VkPipelineExecutablePropertiesKHR* to) {
            real.vkGetPipelineExecutablePropertiesKHR(handle, &which, count, to);
        });
    auto info =
        structure<VkPipelineExecutableInfoKHR>(VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR);
    info.pipeline = pipeline;
    std::string line =
        "{\"kernel\": " + json_string(name) + ", \"number\": " + std::to_string(number) +
        ", \"invocations\": " + std::to_string(invocations) +
        ", \"subgroup\": " + std::to_string(executables.empty() ? 0 : executables[0].subgroupSize) +
        ", \"statistics\": {";
    const auto statistics = enumerate<VkPipelineExecutableStatisticKHR>(
        VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR,
        [&](uint32_t* count, VkPipelineExecutableStatisticKHR* to) {
            real.vkGetPipelineExecutableStatisticsKHR(handle, &info, count, to);
        });
    for (size_t i = 0; i < statistics.size(); ++i) {
        char value[64];
        std::snprintf(value, sizeof(value), "%.15g", value_of(statistics[i]));
        line += (i ? ", " : "") + json_string(statistics[i].name) + ": " + value;
    }
    line += "}, \"code\": " + json_string(code_of(handle, info)) + "}\n";
    const std::lock_guard lock(guard);
    std::fputs(line.c_str(), stdout);
}

// Compiles each kernel once, however many devices ask for it. A pipeline's handle is the kernel's
// number.
VkResult create_pipeline(VkDevice handle, VkPipelineCache, uint32_t,
                         const VkComputePipelineCreateInfo* info, const VkAllocationCallbacks* with,
                         VkPipeline* made) {
    std::string name;
    uintptr_t number;
    uint32_t invocations;
    {
        const std::lock_guard lock(guard);
        const Module& module = modules.at(info->stage.module);
        name = module.name;
        const VkSpecializationInfo& special = *info->stage.pSpecializationInfo;
        const uint32_t* constants = static_cast<const uint32_t*>(special.pData);
        for (size_t i = 0; i < kMaxConstants; ++i)  // the last constant is the same for all
                                                    // kernels
            name += ' ' + std::to_string(constants[i]);
        invocations = invocations_of(module.words, {constants, special.dataSize / 4});
        while (name.ends_with(" 0")) name.resize(name.size() - 2);
        const auto [found, is_new] = kernels.emplace(name, kernels.size() + 1);
        number = found->second;
        *made = reinterpret_cast<VkPipeline>(number);
        if (!is_new) return VK_SUCCESS;
    }
    VkComputePipelineCreateInfo telling = *info;
    telling.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
                     VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
    VkPipeline pipeline;
    const VkResult result =
        real.vkCreateComputePipelines(handle, VK_NULL_HANDLE, 1, &telling, with, &pipeline);
    if (result != VK_SUCCESS) return result;
    print_kernel(handle, pipeline, name, number, invocations);
    real.vkDestroyPipeline(handle, pipeline, with);
    return VK_SUCCESS;
}

uintptr_t bound = 0;

void note_dispatch(uint32_t x, uint32_t y, uint32_t z) {
    char text[128];
    std::snprintf(text, sizeof(text), "%s[%zu, %u, %u, %u, %d]", commands.empty() ? "" : ", ",
                  size_t(bound), x, y, z, after_barrier);
    commands += text;
    after_barrier = false;
}

// A card that is not there has no memory either: mapped memory is the host's.
struct HostMemory {
    size_t size;
    std::vector<std::byte> bytes;  // once it is mapped
};
HostMemory* host_memory(VkDeviceMemory memory) {
    return reinterpret_cast<HostMemory*>(memory);
}
HostMemory* mapped = nullptr;  // staging memory, of the device that was opened last

void pretend_memory(VkPhysicalDeviceMemoryProperties& memory) {
    memory.memoryHeapCount = 1;
    memory.memoryHeaps[0] = {VkDeviceSize(24) << 30, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
    memory.memoryTypeCount = 2;
    memory.memoryTypes[0] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
    memory.memoryTypes[1] = {VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                 VK_MEMORY_PROPERTY_HOST_COHERENT_BIT |
                                 VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
                             0};
}

void requirements(VkDevice handle, VkBuffer buffer, VkMemoryRequirements* needs) {
    real.vkGetBufferMemoryRequirements(handle, buffer, needs);
    needs->memoryTypeBits = 3;
}
VkResult allocate(VkDevice, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks*,
                  VkDeviceMemory* made) {
    *made = reinterpret_cast<VkDeviceMemory>(new HostMemory{size_t(info->allocationSize), {}});
    return VK_SUCCESS;
}
void free_memory(VkDevice, VkDeviceMemory memory, const VkAllocationCallbacks*) {
    if (host_memory(memory) == mapped) mapped = nullptr;
    delete host_memory(memory);
}
VkResult map_memory(VkDevice, VkDeviceMemory memory, VkDeviceSize, VkDeviceSize, VkMemoryMapFlags,
                    void** to) {
    mapped = host_memory(memory);
    mapped->bytes.resize(mapped->size);
    *to = mapped->bytes.data();
    return VK_SUCCESS;
}

// Fills in what the host then reads: tokens are 0, and the candidates of a table extend the root.
VkResult submit(VkQueue, uint32_t, const VkSubmitInfo*, VkFence) {
    static const int32_t answer[] = {0, -1, 0, 0};
    for (size_t i = 0; mapped && i < mapped->bytes.size(); i += sizeof(answer))
        std::memcpy(&mapped->bytes[i], answer, sizeof(answer));
    return VK_SUCCESS;
}

void replace(VolkDeviceTable& vk) {
    real = vk;
    vk.vkCreateShaderModule = create_module;
    vk.vkCreateComputePipelines = create_pipeline;
    vk.vkDestroyPipeline = [](VkDevice, VkPipeline, const VkAllocationCallbacks*) {};
    vk.vkGetBufferMemoryRequirements = requirements;
    vk.vkAllocateMemory = allocate;
    vk.vkFreeMemory = free_memory;
    vk.vkBindBufferMemory = [](VkDevice, VkBuffer, VkDeviceMemory, VkDeviceSize) {
        return VK_SUCCESS;
    };
    vk.vkMapMemory = map_memory;
    vk.vkQueueSubmit = submit;
    vk.vkCreateFence = [](VkDevice, const VkFenceCreateInfo*, const VkAllocationCallbacks*,
                          VkFence* made) {
        *made = VK_NULL_HANDLE;
        return VK_SUCCESS;
    };
    vk.vkDestroyFence = [](VkDevice, VkFence, const VkAllocationCallbacks*) {};
    vk.vkGetFenceStatus = [](VkDevice, VkFence) { return VK_SUCCESS; };
    vk.vkDeviceWaitIdle = [](VkDevice) { return VK_SUCCESS; };
    vk.vkResetFences = [](VkDevice, uint32_t, const VkFence*) { return VK_SUCCESS; };
    vk.vkAllocateCommandBuffers = [](VkDevice, const VkCommandBufferAllocateInfo*,
                                     VkCommandBuffer* made) {
        *made = VK_NULL_HANDLE;
        return VK_SUCCESS;
    };
    vk.vkFreeCommandBuffers = [](VkDevice, VkCommandPool, uint32_t, const VkCommandBuffer*) {};
    vk.vkBeginCommandBuffer = [](VkCommandBuffer, const VkCommandBufferBeginInfo*) {
        return VK_SUCCESS;
    };
    vk.vkEndCommandBuffer = [](VkCommandBuffer) { return VK_SUCCESS; };
    vk.vkCreateDescriptorPool = [](VkDevice, const VkDescriptorPoolCreateInfo*,
                                   const VkAllocationCallbacks*, VkDescriptorPool* made) {
        *made = VK_NULL_HANDLE;
        return VK_SUCCESS;
    };
    vk.vkResetDescriptorPool = [](VkDevice, VkDescriptorPool, VkDescriptorPoolResetFlags) {
        return VK_SUCCESS;
    };
    vk.vkAllocateDescriptorSets = [](VkDevice, const VkDescriptorSetAllocateInfo*,
                                     VkDescriptorSet* made) {
        *made = VK_NULL_HANDLE;
        return VK_SUCCESS;
    };
    vk.vkUpdateDescriptorSets = [](VkDevice, uint32_t, const VkWriteDescriptorSet*, uint32_t,
                                   const VkCopyDescriptorSet*) {};
    vk.vkCmdPushConstants = [](VkCommandBuffer, VkPipelineLayout, VkShaderStageFlags, uint32_t,
                               uint32_t, const void*) {};
    vk.vkCmdUpdateBuffer = [](VkCommandBuffer, VkBuffer, VkDeviceSize, VkDeviceSize, const void*) {
    };
    vk.vkCmdFillBuffer = [](VkCommandBuffer, VkBuffer, VkDeviceSize, VkDeviceSize, uint32_t) {};
    vk.vkCmdCopyBuffer = [](VkCommandBuffer, VkBuffer, VkBuffer, uint32_t, const VkBufferCopy*) {};
    vk.vkCmdBindPipeline = [](VkCommandBuffer, VkPipelineBindPoint, VkPipeline pipeline) {
        bound = reinterpret_cast<uintptr_t>(pipeline);
    };
    vk.vkCmdBindDescriptorSets = [](VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout,
                                    uint32_t, uint32_t, const VkDescriptorSet*, uint32_t,
                                    const uint32_t*) {};
    vk.vkCmdDispatch = [](VkCommandBuffer, uint32_t x, uint32_t y, uint32_t z) {
        note_dispatch(x, y, z);
    };
    vk.vkCmdDispatchBase = [](VkCommandBuffer, uint32_t, uint32_t, uint32_t, uint32_t x, uint32_t y,
                              uint32_t z) { note_dispatch(x, y, z); };
    vk.vkCmdPipelineBarrier = [](VkCommandBuffer, VkPipelineStageFlags, VkPipelineStageFlags,
                                 VkDependencyFlags, uint32_t, const VkMemoryBarrier*, uint32_t,
                                 const VkBufferMemoryBarrier*, uint32_t,
                                 const VkImageMemoryBarrier*) { after_barrier = true; };
}

DeviceChoices choices() {
    DeviceChoices made;
    made.pretend = [](Traits& traits) {
        traits.timestamp_bits = 0;
        traits.timestamp_seconds = 0;
        pretend_memory(traits.memory);
        traits_of_device = traits;
    };
    made.patch = replace;
    made.submission_work = 1e18;  // no dispatch is cut
    return made;
}

std::unique_ptr<Backend> open() {
    return open_vulkan("vulkan:0", choices());
}

// "matmul=matmul.spv,1,8"
void print_module(const std::string& what, const std::shared_ptr<Instance>& instance) {
    const size_t equals = what.find('='), comma = what.find(',');
    Kernel kernel = {"", {}};
    for (size_t at = comma, i = 0; at < what.size() && i < kMaxConstants; ++i) {
        kernel.constants[i] = uint32_t(std::stoul(what.substr(at + 1)));
        at = what.find(',', at + 1);
    }
    const std::string bytes = read_text(what.substr(equals + 1, comma - equals - 1), 16 << 20);
    std::vector<uint32_t> words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), words.size() * 4);
    const auto opened = std::make_shared<Device>(instance, 0, choices());
    const Pipelines layouts(opened, all_shaders());
    const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .pNext = nullptr,
                                           .flags = 0,
                                           .codeSize = words.size() * 4,
                                           .pCode = words.data()};
    VkShaderModule module;
    check(what, real.vkCreateShaderModule(opened->handle, &info, nullptr, &module),
          "vkCreateShaderModule");
    modules[module] = {what.substr(0, equals), words};
    std::array<VkSpecializationMapEntry, kMaxConstants> entries;
    for (uint32_t i = 0; i < kMaxConstants; ++i) entries[i] = {i, i * 4, 4};
    const VkSpecializationInfo special = {kMaxConstants, entries.data(), sizeof(kernel.constants),
                                          kernel.constants.data()};
    auto pipeline =
        structure<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
    pipeline.stage = structure<VkPipelineShaderStageCreateInfo>(
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO);
    pipeline.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    pipeline.stage.module = module;
    pipeline.stage.pName = "main";
    pipeline.stage.pSpecializationInfo = &special;
    pipeline.layout = layouts.layout();
    VkPipeline made;
    check(what, create_pipeline(opened->handle, VK_NULL_HANDLE, 1, &pipeline, nullptr, &made),
          "vkCreateComputePipelines");
    real.vkDestroyShaderModule(opened->handle, module, nullptr);
}

class Passes {
  public:
    Passes(const std::string& shape, const ShapeChanges& changes, DType type, DType kv)
        : name_(shape + " " + name(type)),
          options_(options_of(type, kv)),
          model_(ModelFiles::random(shape, model_shape(shape, changes), options_), options_,
                 open()) {}

    // A prefill of so many rows.
    void read(int rows) {
        auto drafting = model_.start_session(plain());
        drafting.session->begin({});
        drafting.session->prefill(std::vector<int>(size_t(rows), 1));
        tell("read " + std::to_string(rows));
    }

    // A cycle, as far as it goes on a device that computes nothing.
    void cycle(const std::string& method, AcceptRule accept, float temperature) {
        DraftOptions draft = plain();
        draft.method = method;
        draft.accept = accept;
        if (accept == AcceptRule::keyed) draft.tree = TreeShape{};
        auto drafting = model_.start_session(draft);
        Session& session = *drafting.session;
        Sampling sampling;
        sampling.filters.temperature = temperature;
        sampling.filters.top_k = temperature > 0 ? 40 : 0;
        sampling.penalties.repetition = temperature > 0 ? 1.1f : 1;
        session.begin(sampling);
        session.prefill(std::vector<int>(100, 1));
        tell("begin " + method);
        try {
            const TokenTree tree = session.propose();
            tell("propose " + method);
            session.verify(tree);
        } catch (const Error&) {  // thrown for answers that no device gives
        }
        tell("verify " + method);
    }

    // Runs ops that depend on answers, and ops that only tests ask for.
    void rest() {
        Backend& be = model_.backend();
        auto drafting = model_.start_session(plain());
        const Buffer memory = be.allocate(1 << 20);
        drafting.session->kv().compact(dense(memory.get(), DType::I32, 4, kKvMoveInts));
        const Tensor x = dense(memory.get(), DType::F32, 4, 1024);
        Tensor out = x;
        out.offset_bytes = 1 << 16;
        be.run(Add{out, x, x});
        be.sync();
        tell("rest");
        const auto probe = be.memory_probe(1 << 20);
        probe->read();
        probe->copy();
        commands.clear();
    }

  private:
    static LoadOptions options_of(DType type, DType kv) {
        LoadOptions options;
        options.weights = options.draft_weights = type;
        options.kv = kv;
        options.context = 512;
        options.draft.method = "eagle2";
        options.draft.tree = TreeShape{};
        return options;
    }
    static DraftOptions plain() {
        DraftOptions draft;
        draft.method = "none";
        return draft;
    }

    void tell(const std::string& what) {
        model_.backend().sync();
        const std::lock_guard lock(guard);
        std::printf("{\"pass\": %s, \"commands\": [%s]}\n", json_string(name_ + " " + what).c_str(),
                    commands.c_str());
        commands.clear();
    }

    std::string name_;
    LoadOptions options_;
    Model model_;
};

// The model is narrow, since no kernel depends on how wide a weight is.
ShapeChanges narrow(int heads, int kv_heads, int head_dim) {
    ShapeChanges changes;
    changes.hidden = 512;
    changes.intermediate = 768;
    changes.layers = 1;
    changes.heads = heads;
    changes.kv_heads = kv_heads;
    changes.head_dim = head_dim;
    changes.vocab = 1024;
    changes.context = 1024;
    return changes;
}

constexpr int kRows[] = {1, 8, 16, 60, 128};

void print_all() {
    const auto stored = [](DType type) {
        return find_shader(std::string("embed_") + name(type)) != nullptr;
    };
    for (int i = 0; i < int(DType::I8G32); ++i) {
        const DType type = DType(i);
        if (!stored(type)) continue;
        const DType kv = type == DType::F32 ? DType::F32 : DType::F16;
        Passes llama("llama-3.1-8b", narrow(32, 8, 128), type, kv);
        for (const int rows : kRows) llama.read(rows);
    }
    for (const DType type : {DType::F16, DType::Q4_0}) {
        Passes llama("llama-2-7b", narrow(8, 8, 128), type, DType::F16);
        for (const int rows : kRows) llama.read(rows);
        llama.cycle("eagle2", AcceptRule::keyed, 0);
        llama.cycle("eagle2", AcceptRule::keyed, 0.8f);
        llama.cycle("chain", AcceptRule::ratio, 0.8f);
        llama.rest();
    }
    const auto read = [](Passes model) {
        for (const int rows : kRows) model.read(rows);
    };
    read(Passes{"llama-3.2-1b", narrow(32, 8, 64), DType::Q8_0, DType::F16});
    read(Passes{"qwen3-8b", narrow(16, 8, 128), DType::Q8_0, DType::F32});
    read(Passes{"mixtral-8x7b", narrow(8, 2, 128), DType::Q4_K, DType::F16});
}

// The passes of a model of this shape with so many layers.
void print_shape(const std::string& shape, int layers, const std::string& type) {
    ShapeChanges changes;
    changes.layers = layers;
    for (int i = 0; i < int(DType::I8G32); ++i) {
        if (name(DType(i)) != type) continue;
        Passes model(shape, changes, DType(i), DType::F16);
        for (const int rows : kRows) model.read(rows);
        model.cycle("eagle2", AcceptRule::keyed, 0);
    }
}

int run(std::span<const std::string> arguments) {
    std::string why;
    const auto instance = Instance::get(&why);  // kept: another would load Vulkan's functions anew
    if (!instance) throw Error(why);
    real_create_device = vkCreateDevice;
    vkCreateDevice = create_device;
    open();
    std::printf("{\"device\": %s, \"driver\": %s, \"shaders\": [",
                json_string(traits_of_device.name).c_str(),
                json_string(traits_of_device.driver).c_str());
    for (const Shader& shader : all_shaders())
        std::printf("%s%s", &shader == all_shaders().data() ? "" : ", ",
                    json_string(shader.name).c_str());
    std::printf("]}\n");
    commands.clear();
    if (arguments.empty())
        print_all();
    else if (arguments[0].find('=') == std::string::npos)
        print_shape(arguments[0], std::stoi(arguments[1]), arguments[2]);
    else
        for (const std::string& module : arguments) print_module(module, instance);
    return 0;
}

}  // namespace
}  // namespace aerie::vulkan

int main(int argc, char** argv) {
    try {
        const std::vector<std::string> arguments(argv + 1, argv + argc);
        return aerie::vulkan::run(arguments);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
