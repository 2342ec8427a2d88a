// Decisions that are made by what devices report, for devices that no machine here has.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/error.h"
#include "vulkan/cooperative.h"
#include "vulkan/memory.h"

namespace aerie::vulkan {
namespace {

Traits sufficient() {
    Traits traits;
    traits.api_version = VK_API_VERSION_1_3;
    traits.queue_family = 0;
    traits.shared_bytes = 32 << 10;
    traits.group_size = 256;
    traits.storage_buffers = 10;
    traits.storage_range = 128 << 20;
    return traits;
}

TEST(Requirements, AreThoseOfTheShaders) {
    EXPECT_EQ(missing_of(sufficient()), "");
    const auto without = [](const auto& change) {
        Traits traits = sufficient();
        change(traits);
        return missing_of(traits);
    };
    EXPECT_EQ(without([](Traits& t) { t.shared_bytes = 16 << 10; }),
              "it has at most 16 KiB of memory shared by a workgroup, aerie needs 32");
    EXPECT_EQ(without([](Traits& t) { t.group_size = 128; }),
              "it has at most 128 invocations in a workgroup, aerie needs 256");
    EXPECT_EQ(without([](Traits& t) { t.storage_buffers = 4; }),
              "it has at most 4 storage buffers in a shader, aerie needs 10");
    EXPECT_EQ(without([](Traits& t) { t.storage_range = 64 << 20; }),
              "it has at most 64 MiB in one binding, aerie needs 128");
    // Some drivers count in 27 bits.
    EXPECT_EQ(without([](Traits& t) { t.storage_range = 134'217'727; }), "");
    EXPECT_EQ(without([](Traits& t) { t.storage_range = 134'217'726; }),
              "it has at most 127 MiB in one binding, aerie needs 128");
    EXPECT_EQ(without([](Traits& t) { t.shared_bytes = (32 << 10) - 1; }),
              "it has at most 31 KiB of memory shared by a workgroup, aerie needs 32");
    EXPECT_EQ(without([](Traits& t) { t.api_version = VK_API_VERSION_1_1; }),
              "it has Vulkan 1.1, aerie needs 1.2");
    EXPECT_EQ(without([](Traits& t) { t.queue_family.reset(); }), "it has no compute queue");
}

VkQueueFamilyProperties family(VkQueueFlags flags) {
    VkQueueFamilyProperties properties = {};
    properties.queueFlags = flags;
    return properties;
}

TEST(QueueFamily, ComputesAndDrawsNotIfThereIsAChoice) {
    constexpr VkQueueFlags kAll = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
    using Families = std::vector<VkQueueFamilyProperties>;
    EXPECT_EQ(choose_queue_family(Families{}), std::nullopt);
    EXPECT_EQ(choose_queue_family(Families{family(VK_QUEUE_TRANSFER_BIT)}), std::nullopt);
    EXPECT_EQ(choose_queue_family(Families{family(kAll), family(kAll)}), 0u);
    EXPECT_EQ(
        choose_queue_family(Families{family(kAll), family(VK_QUEUE_TRANSFER_BIT),
                                     family(VK_QUEUE_COMPUTE_BIT), family(VK_QUEUE_COMPUTE_BIT)}),
        2u);
}

TEST(Matrices, AreTrustedByDriverAndHardware) {
    const auto trusted = [](VkDriverId driver, VkPhysicalDeviceType type, bool mixed_dot = false,
                            uint32_t least_subgroup = 8) {
        Traits traits = sufficient();
        traits.driver_id = driver;
        traits.type = type;
        traits.mixed_dot = mixed_dot;
        traits.least_subgroup = least_subgroup;
        traits.cooperative_matrix = true;
        return trusts_matrices(traits);
    };
    constexpr auto kDiscrete = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    constexpr auto kIntegrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    EXPECT_TRUE(trusted(VK_DRIVER_ID_NVIDIA_PROPRIETARY, kDiscrete));
    EXPECT_TRUE(trusted(VK_DRIVER_ID_MESA_RADV, kIntegrated, true, 32));
    EXPECT_TRUE(trusted(VK_DRIVER_ID_MESA_RADV, kDiscrete, true, 32));
    EXPECT_FALSE(trusted(VK_DRIVER_ID_MESA_RADV, kDiscrete, false, 32));  // emulated, if reported
    for (const VkDriverId amd : {VK_DRIVER_ID_AMD_PROPRIETARY, VK_DRIVER_ID_AMD_OPEN_SOURCE}) {
        EXPECT_TRUE(trusted(amd, kDiscrete, true, 32));
        EXPECT_FALSE(trusted(amd, kDiscrete, false, 32));
        EXPECT_FALSE(trusted(amd, kIntegrated, true, 32));
    }
    for (const VkDriverId intel :
         {VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS, VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA}) {
        EXPECT_TRUE(trusted(intel, kDiscrete, true, 16));
        EXPECT_FALSE(trusted(intel, kDiscrete, true, 8));
        EXPECT_FALSE(trusted(intel, kDiscrete, true, 0));  // Vulkan 1.2: unknown
    }
    EXPECT_FALSE(trusted(VK_DRIVER_ID_QUALCOMM_PROPRIETARY, kIntegrated, true, 64));
    EXPECT_FALSE(trusted(VK_DRIVER_ID_MESA_LLVMPIPE, VK_PHYSICAL_DEVICE_TYPE_CPU));
}

// If a driver goes wrong with matrices, a variable turns them off; no other build is needed.
TEST(Matrices, CanBeDoneWithout) {
    Traits traits = sufficient();
    traits.driver_id = VK_DRIVER_ID_NVIDIA_PROPRIETARY;
    const auto uses = [&](const char* value) {
        ::setenv("AERIE_VULKAN_MATRICES", value, 1);
        return uses_matrices(traits);
    };
    EXPECT_FALSE(uses("0"));
    EXPECT_TRUE(uses("1"));
    EXPECT_TRUE(uses(""));
    EXPECT_THROW(uses("off"), UsageError);
    ::unsetenv("AERIE_VULKAN_MATRICES");
    EXPECT_TRUE(uses_matrices(traits));
    traits.driver_id = VK_DRIVER_ID_MESA_LLVMPIPE;
    EXPECT_FALSE(uses("1")) << "asks for no more than there would be";
    ::unsetenv("AERIE_VULKAN_MATRICES");
}

// Kernels with matrices are made for subgroups of one size, which drivers are asked for.
TEST(Matrices, AreThoseOfSubgroupsThatAreAskedFor) {
    Traits traits = sufficient();
    traits.subgroup_size = 32, traits.least_subgroup = 16, traits.most_subgroup = 32;
    traits.most_subgroups = 64;
    traits.subgroup_control = traits.full_subgroups = traits.requires_subgroups = true;
    EXPECT_EQ(required_subgroup(traits), 32u);
    EXPECT_EQ(matrix_subgroup(traits), 32u);
    const auto with = [&](const auto& change) {
        Traits other = traits;
        change(other);
        return std::pair(required_subgroup(other), matrix_subgroup(other));
    };
    using Widths = std::pair<uint32_t, uint32_t>;
    for (const VkDriverId intel :
         {VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS, VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA})
        EXPECT_EQ(with([&](Traits& t) { t.driver_id = intel; }), Widths(16, 16));
    EXPECT_EQ(
        with([](Traits& t) { t.subgroup_size = t.most_subgroup = 64, t.least_subgroup = 32; }),
        Widths(64, 64));
    // Where the driver cannot be asked, the widest subgroups are expected.
    EXPECT_EQ(with([](Traits& t) { t.subgroup_control = false; }), Widths(0, 32));
    EXPECT_EQ(with([](Traits& t) { t.full_subgroups = false; }), Widths(0, 32));
    EXPECT_EQ(with([](Traits& t) { t.requires_subgroups = false, t.subgroup_size = 16; }),
              Widths(0, 32));
    EXPECT_EQ(with([](Traits& t) { t.most_subgroups = 4; }), Widths(0, 32));
    EXPECT_EQ(with([](Traits& t) { t.subgroup_size = t.least_subgroup = t.most_subgroup = 0; }),
              Widths(0, 0));
}

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                kVisible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                           VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                                kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
                                kUncached = VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD |
                                            VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;

int type_of(std::initializer_list<VkMemoryPropertyFlags> types, Place place, bool unified,
            uint32_t allowed = ~0u) {
    VkPhysicalDeviceMemoryProperties memory = {};
    for (const VkMemoryPropertyFlags flags : types)
        memory.memoryTypes[memory.memoryTypeCount++].propertyFlags = flags;
    return choose_memory_type(memory, allowed, place, unified);
}

// The types are in the order in which RADV lists those of an integrated GPU.
TEST(MemoryType, OfSharedMemoryIsNotCachedUnlessToBeRead) {
    const auto types = {kLocal,
                        kLocal | kVisible,
                        kVisible | kCached,
                        kLocal | kVisible | kCached,
                        kLocal | kUncached,
                        kLocal | kVisible | kUncached};
    EXPECT_EQ(type_of(types, Place::device, true), 1);
    EXPECT_EQ(type_of(types, Place::staging, true), 2);
    EXPECT_EQ(type_of({kLocal, kVisible | kCached}, Place::device, true), 1);
    EXPECT_EQ(type_of({kLocal}, Place::device, true), -1);
}

TEST(MemoryType, OfACardIsItsOwn) {
    const auto types = {VkMemoryPropertyFlags(0), kVisible, kLocal, kVisible | kCached,
                        kLocal | kVisible};
    EXPECT_EQ(type_of(types, Place::device, false), 2);
    EXPECT_EQ(type_of(types, Place::staging, false), 3);
    EXPECT_EQ(type_of(types, Place::device, false, 0b10000), 4);
    EXPECT_EQ(type_of(types, Place::device, false, 0b1011), -1);
}

TEST(MemoryType, IsNoneForOtherUses) {
    EXPECT_EQ(type_of({kLocal | VK_MEMORY_PROPERTY_PROTECTED_BIT,
                       kLocal | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT, kLocal | kUncached,
                       kLocal | kVisible},
                      Place::device, false),
              3);
    EXPECT_EQ(type_of({kVisible | kCached | kUncached, kVisible}, Place::staging, false), 1);
}

}  // namespace
}  // namespace aerie::vulkan
