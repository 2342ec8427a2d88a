// Asks for the shapes of cooperative matrices and chooses among them.
#include "vulkan/cooperative.h"

#include <tuple>

namespace aerie::vulkan {

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

MatrixShape matmul_shape(const std::vector<CooperativeProperties>& all, ComponentType element,
                         ComponentType sum) {
    constexpr int32_t kSubgroup = 3;
    constexpr uint32_t kMost = 32;  // rows of a strip, elements of a group
    MatrixShape best;
    for (const CooperativeProperties& p : all) {
        if (p.a != element || p.b != element || p.c != sum || p.result != sum || p.saturates ||
            p.scope != kSubgroup || kMost % p.m || kMost % p.n || kMost % p.k || p.n < 8)
            continue;
        // Few columns, then few multiplications.
        if (!best || std::tuple(p.n, kMost - p.k, kMost - p.m) <
                         std::tuple(best.n, kMost - best.k, kMost - best.m))
            best = {p.m, p.n, p.k};
    }
    return best;
}

}  // namespace aerie::vulkan
