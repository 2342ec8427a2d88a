// Opening, memory and scratch of the Vulkan backend. The ops are in ops/.
#include "vulkan/backend.h"
#include "vulkan/matmul_kernels.h"

#include <algorithm>

#include "core/error.h"
#include "vulkan/shaders.h"
#include "vulkan/vulkan_backend.h"
#include "vulkan/weight.h"

namespace aerie {
namespace vulkan {

namespace {

// Details about matrices, such as " (f16 16x8x16, int8 16x8x32)", or why there are none. Shapes are
// known only if the device is open.
std::string about_matrices(const Traits& traits, const Matrices* open) {
    if (!traits.cooperative_matrix) return "";
    if (!has_matrix_shaders()) return " (not in this build)";
    const bool has = open && (open->f16 || open->s8);
    if (!has && !trusts_matrices(traits)) return " (not trusted with this driver)";
    if (!has && !uses_matrices(traits)) return " (AERIE_VULKAN_MATRICES=0)";
    if (!open) return "";
    std::string shapes;
    const auto add = [&](const char* type, const MatrixShape& shape) {
        if (shape)
            shapes += (shapes.empty() ? "" : ", ") + std::string(type) + std::to_string(shape.m) +
                      "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k);
    };
    add("f16 ", open->f16);
    add("int8 ", open->s8);
    return " (" + (shapes.empty() ? "of no shape that suits" : shapes) + ")";
}

// Says whether the driver supports the float controls on which the CPU's bits depend. Without them
// it may give the same bits, too, as long as no denormal occurs.
std::string about_bits(const FloatControls& controls) {
    std::string lacks;
    const auto add = [&](const char* what, bool there) {
        if (!there) lacks += (lacks.empty() ? "" : ", ") + std::string(what);
    };
    add("denormals", controls.denormals);
    add("infinities", controls.infinities);
    add("rounding", controls.rounding);
    return "the CPU's bits in quantised types: " +
           (lacks.empty() ? "yes" : "not promised: the driver has no control to keep " + lacks);
}

// Lines about a device for people. `open`: its matrices, if it is open.
std::vector<std::string> details(const Traits& traits, const Matrices* open) {
    std::string used, unused;
    const bool multiplies =
        open ? open->f16 || open->s8 : traits.cooperative_matrix && uses_matrices(traits);
    const auto add = [&](const std::string& what, bool there, bool wanted) {
        std::string& list = there && wanted ? used : unused;
        list += (list.empty() ? "" : ", ") + what + (there ? "" : " (missing)");
    };
    add("integer dot product", traits.integer_dot, true);
    add("timestamps", traits.timestamp_seconds > 0, true);
    add("cooperative matrices" + about_matrices(traits, open), traits.cooperative_matrix,
        multiplies);
    add("subgroup size control", traits.subgroup_control,
        multiplies && required_subgroup(traits) > 0);
    add("16-bit storage", traits.storage16, false);
    add("8-bit storage", traits.storage8, false);
    add("f16 arithmetic", traits.float16, false);
    add("buffer addresses", traits.buffer_address, false);
    const auto version = [](uint32_t v) {
        return std::to_string(VK_API_VERSION_MAJOR(v)) + "." +
               std::to_string(VK_API_VERSION_MINOR(v));
    };
    std::string subgroups = "subgroups of " + std::to_string(traits.subgroup_size);
    if (traits.least_subgroup < traits.most_subgroup)
        subgroups += " (" + std::to_string(traits.least_subgroup) + " to " +
                     std::to_string(traits.most_subgroup) + ")";
    return {"Vulkan " + version(traits.api_version) + ", " + subgroups + ", " +
                std::to_string(traits.shared_bytes >> 10) + " KiB shared memory, " +
                (traits.unified() ? "memory shared with the host" : "memory of its own") +
                ", UUID " + traits.uuid,
            "used: " + (used.empty() ? "nothing beyond Vulkan 1.2" : used),
            "not used: " + (unused.empty() ? "nothing" : unused),
            about_bits(traits.float_controls)};
}

// A device of no known kind counts as a CPU: it is not chosen unless it is named.
DeviceKind kind_of(VkPhysicalDeviceType type) {
    return type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU     ? DeviceKind::discrete_gpu
           : type == VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU    ? DeviceKind::virtual_gpu
           : type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ? DeviceKind::integrated_gpu
                                                            : DeviceKind::cpu;
}

Capabilities describe(size_t index, const Traits& traits, const Matrices* open = nullptr) {
    Capabilities caps;
    caps.name = "vulkan:" + std::to_string(index);
    caps.description = traits.name + ", " + traits.driver;
    caps.memory_bytes = traits.memory_bytes;
    caps.problem = traits.missing;
    caps.kind = kind_of(traits.type);
    caps.details = details(traits, open);
    caps.most.rows = caps.most.heads = caps.most.places = kMaxGroups;
    caps.most.widest = kWidest;
    caps.most.context = kMaxContext;
    caps.most.vocab = kMaxVocab;
    return caps;
}

}  // namespace

VulkanBackend::VulkanBackend(std::shared_ptr<Device> device, size_t index)
    : device_(std::move(device)),
      queue_(std::make_shared<Queue>(device_)),
      capabilities_(describe(index, device_->traits(), &device_->matrices())) {
    do_reserve({});
}

Buffer VulkanBackend::allocate_raw(size_t size_bytes) {
    return std::make_unique<VulkanMemory>(device_, queue_, size_bytes, Place::device);
}

Buffer VulkanBackend::allocate(size_t size_bytes) {
    Buffer memory = allocate_raw(size_bytes);
    VulkanMemory& made = static_cast<VulkanMemory&>(*memory);
    if (made.mapped)
        std::fill_n(made.mapped, size_bytes, std::byte(0));
    else
        queue_->fill_zero(made);
    return memory;
}

bool VulkanBackend::stores(DType type) const {
    return find_shader(std::string("embed_") + name(type));
}

std::unique_ptr<Weight> VulkanBackend::upload_weight(std::span<const WeightBlock> blocks,
                                                     WeightUse use) {
    return std::make_unique<VulkanWeight>(
        blocks, use, *device_, [this](size_t bytes) { return allocate_raw(bytes); }, *queue_);
}

void Scratch::add_attention_to(TensorPlan& plan, const Limits& limits, size_t most_bytes) {
    chunks = (limits.context + kPageSize - 1) / kPageSize;
    const int row_words = std::max(chunks * limits.heads * (limits.head_dim + 2), 1);
    const int rows = int(std::clamp<size_t>(most_bytes / 4 / size_t(row_words), 1, kMaxNodes));
    plan.add(attention, DType::F32, std::min(rows, std::max(limits.rows, 1)), row_words);
}

void Scratch::add_others_to(TensorPlan& plan, const Limits& limits, bool with_halves) {
    const int rows = std::max(limits.rows, limits.places);
    plan.add(quantised, DType::I8G32, rows, limits.widest / kGroup * kGroup);
    if (with_halves) add_halves_to(plan, rows, limits.widest);
    add_choices_to(plan, limits);
}

void VulkanBackend::forget_norms() {
    halves_for_.clear();
    postponed_.reset();
}

// A pass is over when the host reads or waits, and has not begun while it writes. So all three
// forget what norms left.
void VulkanBackend::write(Tensor to, const void* from) {
    forget_norms();
    queue_->write(to, from);
}

void VulkanBackend::read(Tensor from, void* to) {
    forget_norms();
    queue_->read(from, to);
}

void VulkanBackend::sync() {
    forget_norms();
    queue_->wait();
}

void VulkanBackend::replay(uint64_t key, const std::function<void()>& record) {
    const struct Pass {
        VulkanBackend& backend;
        explicit Pass(VulkanBackend& of) : backend(of) { backend.forget_norms(); }
        ~Pass() { backend.forget_norms(); }
    } pass(*this);
    queue_->replay(key, record);
}

// Scratch is two allocations, since a device may limit the size of one. The scratch of attention
// has as many rows as fit.
std::array<TensorPlan, 2> VulkanBackend::plan_scratch(Scratch& scratch,
                                                      const Limits& limits) const {
    constexpr size_t kAttentionBytes = 64 << 20;
    const Traits& traits = device_->traits();
    std::array<TensorPlan, 2> plans;
    scratch.add_attention_to(
        plans[0], limits,
        std::min({kAttentionBytes, traits.allocation_bytes, traits.storage_range}));
    scratch.add_others_to(plans[1], limits, takes_halves(*device_, DType::F16));
    return plans;
}

size_t VulkanBackend::scratch_bytes(const Limits& limits) const {
    Scratch scratch;
    size_t bytes = 0;
    for (const TensorPlan& plan : plan_scratch(scratch, limits)) bytes += plan.size_bytes();
    return bytes;
}

void VulkanBackend::do_reserve(const Limits& limits) {
    forget_norms();  // a norm may have left rows in the old scratch
    scratch_memory_.clear();
    for (const TensorPlan& plan : plan_scratch(scratch_, limits))
        scratch_memory_.push_back(plan.allocate(*this));
}

std::vector<OpTime> VulkanBackend::op_times() {
    queue_->wait();
    std::vector<OpTime> times;
    for (const auto& [op, time] : queue_->times()) times.push_back(time);
    return times;
}

}  // namespace vulkan

std::vector<Capabilities> vulkan_capabilities() {
    std::vector<Capabilities> all;
    if (const auto instance = vulkan::Instance::get())
        for (size_t i = 0; i < instance->devices().size(); ++i)
            all.push_back(vulkan::describe(i, instance->devices()[i].traits));
    return all;
}

std::string vulkan_absence() {
    std::string why;
    const auto instance = vulkan::Instance::get(&why);
    if (instance && instance->devices().empty())
        why = "its loader finds no device: install your GPU's driver, such as mesa-vulkan-drivers";
    return why;
}

std::unique_ptr<Backend> open_vulkan(const std::string& device,
                                     const vulkan::DeviceChoices& choices) {
    std::string why;
    const auto instance = vulkan::Instance::get(&why);
    if (!instance) throw Error(device + ": " + why, Cause::no_device);
    const size_t index = vulkan::find_device(*instance, device);
    return std::make_unique<vulkan::VulkanBackend>(
        std::make_shared<vulkan::Device>(instance, index, choices), index);
}

}  // namespace aerie
