// VK_KHR_cooperative_matrix, which is newer than the Vulkan headers of Debian 12: the structures
// that are used here, with the values of Vulkan's registry, and the choice of matrices for matmul.
#pragma once

#include <volk.h>

#include <vector>

#include "vulkan/instance.h"

namespace aerie::vulkan {

// A matrix of M x K times one of K x N.
struct MatrixShape {
    uint32_t m = 0, n = 0, k = 0;

    explicit operator bool() const { return m > 0; }
};

constexpr uint32_t kCooperativeInvocations = 128;  // per range of K in a matmul: whole subgroups
constexpr uint32_t kMaxCooperativeParts = 2;       // ranges of K (split-K) in a workgroup
constexpr const char* kCooperativeExtension = "VK_KHR_cooperative_matrix";

struct CooperativeFeatures {  // VkPhysicalDeviceCooperativeMatrixFeaturesKHR
    VkStructureType type = VkStructureType(1000506000);
    void* next = nullptr;
    VkBool32 matrix = VK_FALSE, robust_access = VK_FALSE;
};

enum class ComponentType : int32_t { f16 = 0, f32 = 1, s8 = 3, s32 = 5 };  // VkComponentTypeKHR

struct CooperativeProperties {  // VkCooperativeMatrixPropertiesKHR
    VkStructureType type = VkStructureType(1000506001);
    void* next = nullptr;
    uint32_t m = 0, n = 0, k = 0;
    ComponentType a = {}, b = {}, c = {}, result = {};
    VkBool32 saturates = VK_FALSE;
    int32_t scope = 0;  // 3: a subgroup
};

// The shape for matmul among `all` products of this element and sum type. Only shapes are
// considered of which whole ones make most_k elements of K; the one that wastes least with few rows
// is chosen. Zero: none suits.
MatrixShape matmul_shape(const std::vector<CooperativeProperties>& all, ComponentType element,
                         ComponentType sum, uint32_t most_k);

struct Matrices {
    MatrixShape f16, s8;  // zero: not used
};

// Whether cooperative matrices are used by default, if the device reports them: on drivers and
// hardware that are known to have them, and to be faster with them. This depends on the driver and
// the hardware alone and on no measurement, because the order of a sum of floats depends on it.
bool trusts_matrices(const Traits& traits);
// The same, unless the user turns them off by AERIE_VULKAN_MATRICES=0. The value 1 is like an unset
// variable; any other throws UsageError.
bool uses_matrices(const Traits& traits);

// The subgroup size that kernels with matrices require of the driver, together with full subgroups;
// 0: the driver cannot be asked.
uint32_t required_subgroup(const Traits& traits);
// The subgroup size for which those kernels are made: the required one, or else the largest that
// the driver may choose.
uint32_t matrix_subgroup(const Traits& traits);

// Asks a device for its matrices for matmul; none if this build has no shaders for them. Only a
// device that is opened to use matrices is asked, because some drivers crash.
Matrices ask_for_matrices(VkInstance instance, VkPhysicalDevice device, const Traits& traits);

}  // namespace aerie::vulkan
