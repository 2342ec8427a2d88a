// VK_KHR_cooperative_matrix, which is younger than the Vulkan headers of Debian 12: what of it is
// used here, with the values of the registry, and the matrices that suit matmul.
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

constexpr uint32_t kCooperativeInvocations = 128;  // of a part of k in matmul: whole subgroups
constexpr uint32_t kMostCooperativeParts = 2;      // of k, that a workgroup has
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
    int32_t scope = 0;  // 3: of a subgroup
};

// Of the products of such elements with such sums those that matmul can use, of which whole ones
// make most_k elements of k, the one that wastes least where there are few rows: its shape; zero
// where there is none.
MatrixShape matmul_shape(const std::vector<CooperativeProperties>& all, ComponentType element,
                         ComponentType sum, uint32_t most_k);

struct Matrices {
    MatrixShape f16, s8;  // zero: not there
};

// Whether cooperative matrices are used where nobody asks for them or forbids them: by drivers
// and hardware that are known to have them, and to be quicker with them, when they report them. A
// function of these alone and of no measurement, since the order of a sum of floats depends on it.
bool trusts_matrices(const Traits& traits);
// The same, unless the user does without them: AERIE_VULKAN_MATRICES=0. Throws UsageError where that
// variable is neither 0 nor 1, which is how it is without it.
bool uses_matrices(const Traits& traits);

// What kernels with matrices ask the driver for: subgroups that are whole and have so many
// invocations; 0: it cannot be asked.
uint32_t required_subgroup(const Traits& traits);
// Invocations of their subgroups: those, or else the most that the driver may take.
uint32_t matrix_subgroup(const Traits& traits);

// Those of a device and this build for matmul. There are drivers that crash when they are asked.
Matrices ask_for_matrices(VkInstance instance, VkPhysicalDevice device, const Traits& traits);

}  // namespace aerie::vulkan
