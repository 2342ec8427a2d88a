// The scalar definition of the quantised types: layouts, rounding, and values that fit badly.
#include "core/quant.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "io/input_file.h"
#include "io/json.h"
#include "paths.h"
#include "q6_k_tensor.h"

namespace aerie {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Group {
    float values[kGroup];
};

Group random_group(std::mt19937& random, float deviation) {
    std::normal_distribution<float> normal(0, deviation);
    Group group;
    for (float& value : group.values) value = normal(random);
    return group;
}

float largest(const Group& group) {
    float best = 0;
    for (float value : group.values) best = std::max(best, std::fabs(value));
    return best;
}

template <class Block>
void expect_close(const Group& group, Block (*pack)(const float*), float steps_to_largest) {
    Group back;
    unpack(back.values, pack(group.values));
    // Half a quantisation step, and the rounding of the scale to f16.
    const float bound = largest(group) * (0.5f / steps_to_largest + 1.1f / 2048);
    for (int i = 0; i < kGroup; ++i)
        ASSERT_LE(std::fabs(back.values[i] - group.values[i]), bound) << i;
}

TEST(Quant, RoundsToTheNearestStep) {
    std::mt19937 random(1);
    for (int i = 0; i < 2000; ++i) {
        const Group group = random_group(random, i % 2 ? 0.02f : 30);
        expect_close(group, pack_q8_0, 127);
        expect_close(group, pack_i8g32, 127);
        expect_close(group, pack_q4_0,
                     8 / 2.0f);  // the side opposite to the extreme ends a step early
    }
}

// A tensor that llama.cpp stored, compared with the values that gguf-py reads.
TEST(Quant, Q6KIsGgufs) {
    const auto path = test::test_data_dir() / "q6_k.json";
    const Json want = Json::parse(read_text(path, 1 << 16), path.string());
    const std::vector<BlockQ6_K> blocks = test::q6_k_tensor();
    ASSERT_EQ(blocks.size() * kSuperBlock, size_t(want.find("elements")->number()));
    std::vector<float> values(blocks.size() * kSuperBlock);
    for (size_t i = 0; i < blocks.size(); ++i) unpack(&values[i * kSuperBlock], blocks[i]);
    double sum = 0, squares = 0;
    for (float value : values) {
        sum += double(value);
        squares += double(value) * double(value);
    }
    const double sum2 = want.find("sum2")->number();
    EXPECT_NEAR(squares, sum2, 1e-6 * sum2);
    EXPECT_NEAR(sum, want.find("sum")->number(), 1e-5 * std::sqrt(double(values.size()) * sum2));
    const auto& at = *want.find("at")->array();
    const auto& some = *want.find("values")->array();
    ASSERT_GE(at.size(), 8u);
    for (size_t i = 0; i < at.size(); ++i) {
        const double value = some[i].number();
        EXPECT_NEAR(values[size_t(at[i].number())], value, 1e-6 * std::fabs(value)) << i;
    }
}

TEST(Quant, BlocksAreGgufs) {
    Group group = {};
    for (int i = 0; i < kGroup; ++i) group.values[i] = float(i) - 16;  // -16 .. 15
    const BlockQ8_0 q8 = pack_q8_0(group.values);
    EXPECT_EQ(q8.scale, f32_to_f16(16.0f / 127));
    EXPECT_EQ(q8.q[0], -127);
    EXPECT_EQ(q8.q[16], 0);
    EXPECT_EQ(q8.q[31], std::lround(15 / f16_to_f32(q8.scale)));
    const BlockQ4_0 q4 = pack_q4_0(group.values);
    EXPECT_EQ(q4.scale, f32_to_f16(2));
    EXPECT_EQ(q4.q[0], 0 | 8 << 4);    // -16 -> 0, 0 -> 8
    EXPECT_EQ(q4.q[15], 8 | 15 << 4);  // -1 -> 8 (ties to even), 15 -> 15
}

TEST(Quant, ZeroStaysZero) {
    const Group zero = {};
    Group back;
    unpack(back.values, pack_q8_0(zero.values));
    EXPECT_EQ(largest(back), 0);
    unpack(back.values, pack_q4_0(zero.values));
    EXPECT_EQ(largest(back), 0);
    unpack(back.values, pack_i8g32(zero.values));
    EXPECT_EQ(largest(back), 0);
}

TEST(Quant, StoredValuesAreKept) {
    std::mt19937 random(2);
    for (int i = 0; i < 500; ++i) {
        Group once, twice;
        unpack(once.values, pack_q8_0(random_group(random, 1).values));
        unpack(twice.values, pack_q8_0(once.values));
        for (int j = 0; j < kGroup; ++j) EXPECT_NEAR(once.values[j], twice.values[j], 1e-3f);
        unpack(once.values, pack_q4_0(random_group(random, 1).values));
        unpack(twice.values, pack_q4_0(once.values));
        for (int j = 0; j < kGroup; ++j) EXPECT_EQ(once.values[j], twice.values[j]);
    }
}

TEST(Quant, HugeWeightsBecomeTheLargestStep) {
    Group group = {};
    group.values[3] = 1e30f;
    group.values[4] = -kInfinity;
    group.values[5] = std::nanf("");
    Group back;
    unpack(back.values, pack_q8_0(group.values));
    EXPECT_EQ(back.values[3], 65504.0f * 127);
    EXPECT_EQ(back.values[5], 0);
    unpack(back.values, pack_q4_0(group.values));
    for (float value : back.values) EXPECT_TRUE(std::isfinite(value));
}

TEST(Quant, ActivationsThatAreNoNumbersPoisonTheirGroup) {
    for (float bad : {std::nanf(""), kInfinity, -kInfinity}) {
        Group group = {};
        group.values[7] = bad;
        const BlockI8G32 block = pack_i8g32(group.values);
        EXPECT_TRUE(std::isnan(block.scale));
        for (int8_t q : block.q) EXPECT_EQ(q, 0);
    }
}

TEST(Quant, TinyActivationsBecomeZero) {
    Group group = {};
    group.values[0] = 0x1p-101f;
    EXPECT_EQ(pack_i8g32(group.values).scale, 0);
    group.values[1] = 0x1p-100f;
    EXPECT_EQ(pack_i8g32(group.values).q[1], 127);
}

}  // namespace
}  // namespace aerie
