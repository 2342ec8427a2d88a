// Execution modes that are added to SPIR-V: they are where they belong, and nothing else changes.
#include "vulkan/float_controls.h"

#include <gtest/gtest.h>

#include "vulkan/shaders.h"

namespace aerie::vulkan {
namespace {

using Instruction = std::vector<uint32_t>;

std::vector<Instruction> instructions(std::span<const uint32_t> words) {
    std::vector<Instruction> all;
    for (size_t i = 5; i < words.size(); i += words[i] >> 16)
        all.push_back({words.begin() + std::ptrdiff_t(i),
                       words.begin() + std::ptrdiff_t(i + (words[i] >> 16))});
    return all;
}

uint32_t opcode(const Instruction& instruction) {
    return instruction[0] & 0xffffu;
}

TEST(FloatControls, AreDeclaredForTheEntryPoint) {
    for (const char* name : {"add", "attention", "matmul_q8_0_dot", "top_k_row"}) {
        const Shader* shader = find_shader(name);
        ASSERT_TRUE(shader);
        const auto words = with_float_controls(shader->words, {.denormals = true,
                                                               .infinities = true,
                                                               .rounding = true,
                                                               .halves = true,
                                                               .doubles_with_halves = true});
        uint32_t entry = 0;
        std::vector<uint32_t> capabilities;
        std::vector<std::pair<uint32_t, uint32_t>> modes;  // modes and widths
        std::vector<Instruction> rest;
        for (const Instruction& one : instructions(words)) {
            if (opcode(one) == 15) entry = one[2];
            if (opcode(one) == 17 && one[1] >= 4464 && one[1] <= 4468) {
                EXPECT_EQ(entry, 0u);
                capabilities.push_back(one[1]);
            } else if (opcode(one) == 16 && one[2] >= 4459) {
                EXPECT_EQ(one.size(), 4u);
                EXPECT_EQ(one[1], entry);
                modes.emplace_back(one[2], one[3]);
            } else {
                rest.push_back(one);
            }
        }
        EXPECT_EQ(capabilities, (std::vector<uint32_t>{4464, 4466, 4467})) << name;
        const std::vector<std::pair<uint32_t, uint32_t>> wanted = {
            {4459, 32}, {4459, 16}, {4459, 64}, {4461, 32}, {4462, 32}};
        EXPECT_EQ(modes, wanted) << name;
        EXPECT_EQ(rest, instructions(shader->words)) << name;
        EXPECT_GE(shader->words[1], 0x00010400u) << "SPIR-V older than that needs an extension";
    }
}

TEST(FloatControls, AreThoseOfTheDevice) {
    const Shader* shader = find_shader("add");
    const std::vector<uint32_t> plain(shader->words.begin(), shader->words.end());
    EXPECT_EQ(with_float_controls(shader->words, {}), plain);
    EXPECT_EQ(with_float_controls(shader->words, {.infinities = true}).size(), plain.size() + 6);
    EXPECT_EQ(with_float_controls(shader->words, {.halves = true}).size(), plain.size() + 6);
}

}  // namespace
}  // namespace aerie::vulkan
