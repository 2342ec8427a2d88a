// After the rewrite, accesses to shared memory wait for nothing, and barriers make all of them
// visible.
#include "vulkan/shared_memory.h"

#include <gtest/gtest.h>

#include <map>

#include "vulkan/shaders.h"

namespace aerie::vulkan {
namespace {

// Counts of a module: accesses that make something available or visible, accesses that others may
// see, and barriers by what they order.
struct Seen {
    int made = 0, shared = 0;
    std::map<uint32_t, int> barriers;
};

Seen look_at(std::span<const uint32_t> words) {
    const std::map<uint32_t, size_t> masks = {{61, 4}, {62, 3}, {4457, 6}, {4458, 5}};
    std::map<uint32_t, uint32_t> constants;
    Seen seen;
    for (size_t i = 5; i < words.size(); i += words[i] >> 16) {
        const uint32_t length = words[i] >> 16, opcode = words[i] & 0xffffu;
        if (opcode == 43) constants[words[i + 2]] = words[i + 3];
        if (opcode == 224) ++seen.barriers[constants.at(words[i + 3])];
        const auto mask = masks.find(opcode);
        if (mask == masks.end() || mask->second >= length) continue;
        const uint32_t bits = words[i + mask->second];
        seen.made += (bits & 0x18) != 0;
        seen.shared += (bits & 0x20) != 0;  // NonPrivatePointer
        EXPECT_EQ(mask->second + 1 + ((bits & 2) != 0) + ((bits & 0x18) != 0), length);
    }
    return seen;
}

TEST(SharedMemory, IsOrderedByBarriersAlone) {
    int modules = 0;
    for (const Shader& shader : all_shaders()) {
        const Seen before = look_at(shader.words),
                   after = look_at(ordered_by_barriers(shader.words));
        EXPECT_EQ(after.made, 0) << shader.name;
        EXPECT_EQ(after.shared, before.shared) << shader.name;
        if (before.made == 0) continue;
        ++modules;
        ASSERT_EQ(before.barriers.size(), 1u) << shader.name;
        const auto [semantics, count] = *before.barriers.begin();
        EXPECT_EQ(after.barriers, (std::map<uint32_t, int>{{semantics | 0x6000, count}}))
            << shader.name;
    }
    if (!has_matrix_shaders()) GTEST_SKIP() << "SKIPPED: this build has no cooperative matrices";
    EXPECT_GE(modules, 8);
}

TEST(SharedMemory, OfTheOlderModelStaysAsItIs) {
    const Shader* shader = find_shader("attention");
    ASSERT_TRUE(shader);
    EXPECT_EQ(ordered_by_barriers(shader->words),
              std::vector<uint32_t>(shader->words.begin(), shader->words.end()));
}

}  // namespace
}  // namespace aerie::vulkan
