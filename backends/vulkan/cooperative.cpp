// Whether cooperative matrices are used, and the choice among their shapes.
#include "vulkan/cooperative.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "core/dtype.h"
#include "core/error.h"
#include "vulkan/matmul_kernels.h"
#include "vulkan/shaders.h"

namespace aerie::vulkan {

namespace {

// All matrix products that the device reports. It must have the extension.
std::vector<CooperativeProperties> cooperative_properties(VkInstance instance,
                                                          VkPhysicalDevice device) {
    using Function = VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*, CooperativeProperties*);
    const auto get = reinterpret_cast<Function>(
        vkGetInstanceProcAddr(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
    uint32_t count = 0;
    if (!get || get(device, &count, nullptr) != VK_SUCCESS) return {};
    std::vector<CooperativeProperties> all(count);
    if (get(device, &count, all.data()) != VK_SUCCESS) return {};
    all.resize(count);
    return all;
}

}  // namespace

// AMD's drivers report matrices for hardware that has none, or may emulate them, and one driver for
// Windows crashes with integrated GPUs. RDNA 3, which has them, is the first AMD hardware with
// mixed dot products. On Intel GPUs before Xe2, matrices were seen to be slower than none; the
// subgroups of Xe2 have at least 16 invocations.
bool trusts_matrices(const Traits& traits) {
    switch (traits.driver_id) {
        case VK_DRIVER_ID_NVIDIA_PROPRIETARY:
        case VK_DRIVER_ID_MESA_NVK:
            return true;
        case VK_DRIVER_ID_MESA_RADV:
            return traits.mixed_dot;
        case VK_DRIVER_ID_AMD_PROPRIETARY:
        case VK_DRIVER_ID_AMD_OPEN_SOURCE:
            return traits.type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU && traits.mixed_dot;
        case VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS:
        case VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA:
            return traits.least_subgroup >= 16;
        default:
            return false;
    }
}

bool uses_matrices(const Traits& traits) {
    const char* wanted = std::getenv("AERIE_VULKAN_MATRICES");
    const std::string value = wanted ? wanted : "";
    if (value == "0") return false;
    if (value.empty() || value == "1") return trusts_matrices(traits);
    throw UsageError("AERIE_VULKAN_MATRICES=" + value +
                     ": expected 0, to do without cooperative matrices, or 1");
}

// The driver's usual size; on Intel GPUs the smallest, because their matrices are those of the
// narrowest subgroups. A workgroup of the largest kernel must still have no more subgroups than the
// device allows.
uint32_t required_subgroup(const Traits& traits) {
    if (!traits.subgroup_control || !traits.full_subgroups || !traits.requires_subgroups) return 0;
    const bool intel = traits.driver_id == VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS ||
                       traits.driver_id == VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA;
    const uint32_t width = intel ? traits.least_subgroup : traits.subgroup_size;
    const bool has_width = traits.least_subgroup <= width && width <= traits.most_subgroup;
    const bool has_room =
        size_t(width) * traits.most_subgroups >= kCooperativeInvocations * kMaxCooperativeParts;
    return has_width && has_room && kCooperativeInvocations % width == 0 ? width : 0;
}

uint32_t matrix_subgroup(const Traits& traits) {
    const uint32_t required = required_subgroup(traits);
    return required ? required : traits.widest_subgroup();
}

Matrices ask_for_matrices(VkInstance instance, VkPhysicalDevice device, const Traits& traits) {
    Matrices matrices;
    // The shaders need these features, too.
    if (!has_matrix_shaders() || !traits.cooperative_matrix || !traits.device_scope ||
        kCooperativeInvocations % std::max(matrix_subgroup(traits), 1u))
        return matrices;
    const auto all = cooperative_properties(instance, device);
    if (traits.float16)
        matrices.f16 = matmul_shape(all, ComponentType::f16, ComponentType::f32, kHalfPanel);
    if (traits.int8) matrices.s8 = matmul_shape(all, ComponentType::s8, ComponentType::s32, kGroup);
    return matrices;
}

namespace {

constexpr int32_t kSubgroup = 3;

// Integer sums are scaled in float matrices of the same shape, so the device must have those.
bool has_floats(const std::vector<CooperativeProperties>& all, const CooperativeProperties& of) {
    return std::ranges::any_of(all, [&](const CooperativeProperties& p) {
        return p.scope == kSubgroup && p.m == of.m && p.n == of.n && p.result == ComponentType::f32;
    });
}

}  // namespace

MatrixShape matmul_shape(const std::vector<CooperativeProperties>& all, ComponentType element,
                         ComponentType sum, uint32_t most_k) {
    constexpr uint32_t kMost = 32;  // rows of a strip
    MatrixShape best;
    for (const CooperativeProperties& p : all) {
        if (p.a != element || p.b != element || p.c != sum || p.result != sum || p.saturates ||
            p.scope != kSubgroup || !p.m || !p.n || !p.k || kMost % p.m || kMost % p.n ||
            most_k % p.k || p.n < 8 || !has_floats(all, p))
            continue;
        // The narrowest N first, then the fewest multiplications.
        if (!best || std::tuple(p.n, most_k - p.k, kMost - p.m) <
                         std::tuple(best.n, most_k - best.k, kMost - best.m))
            best = {p.m, p.n, p.k};
    }
    return best;
}

}  // namespace aerie::vulkan
