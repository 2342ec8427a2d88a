// Packing into the types that weights may be stored in: how near the values stay, and values that
// fit badly.
#include "core/pack_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/quant.h"

namespace aerie {
namespace {

std::vector<float> there_and_back(const std::vector<float>& values, DType type) {
    std::vector<std::byte> blocks(size_bytes(type, values.size()));
    pack(blocks.data(), values.data(), type, values.size());
    std::vector<float> back(values.size());
    unpack(back.data(), blocks.data(), type, back.size());
    return back;
}

double relative_error(const std::vector<float>& got, const std::vector<float>& want) {
    double error = 0, norm = 0;
    for (size_t i = 0; i < want.size(); ++i) {
        error += std::pow(double(got[i]) - double(want[i]), 2);
        norm += double(want[i]) * double(want[i]);
    }
    return std::sqrt(error / norm);
}

std::vector<float> normal_values(size_t count, float mean, float deviation) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal(mean, deviation);
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
}

// One bit less per value roughly doubles the error; mins help where the mean is not zero.
TEST(PackBlocks, ErrorsFallWithTheBits) {
    const std::vector<float> values = normal_values(1 << 14, 0, 0.02f);
    double last = 1;
    for (const auto& [type, bound] : {std::pair(DType::Q4_0, 0.100),
                                      {DType::Q4_K, 0.078},
                                      {DType::Q5_0, 0.048},
                                      {DType::Q5_K, 0.039},
                                      {DType::Q6_K, 0.021},
                                      {DType::Q8_0, 0.008}}) {
        const double error = relative_error(there_and_back(values, type), values);
        EXPECT_LT(error, bound) << name(type);
        EXPECT_LT(error, last) << name(type);
        last = error;
    }
    EXPECT_LT(relative_error(there_and_back(values, DType::Q5_1), values), 0.043);
    const std::vector<float> shifted = normal_values(1 << 14, -0.05f, 0.02f);
    EXPECT_LT(relative_error(there_and_back(shifted, DType::Q4_K), shifted),
              relative_error(there_and_back(shifted, DType::Q4_0), shifted) / 1.3);
}

// Values that a block holds stay as they are, but for the last bit of its scales.
TEST(PackBlocks, ValuesOfABlockStay) {
    for (DType type : {DType::Q8_0, DType::Q4_0, DType::Q5_0, DType::Q5_1, DType::Q4_K, DType::Q5_K,
                       DType::Q6_K}) {
        const std::vector<float> once = there_and_back(normal_values(4096, 0, 1), type);
        EXPECT_LT(relative_error(there_and_back(once, type), once), 0.02) << name(type);
    }
}

TEST(PackBlocks, ValuesThatFitBadly) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (DType type : kWeightTypes) {
        SCOPED_TRACE(name(type));
        const std::vector<float> zeros(256);
        EXPECT_EQ(there_and_back(zeros, type), zeros);
        for (float value : {1.0f, -1.0f, 1e-30f, -3e-9f}) {
            const std::vector<float> same(256, value);
            for (float got : there_and_back(same, type))
                EXPECT_NEAR(got, value, std::fabs(value) * 0.02f + 1e-7f);
        }
        if (is_float(type)) continue;
        std::vector<float> odd = normal_values(256, 0, 1);
        odd[7] = std::nanf("");
        odd[100] = kInfinity;
        odd[200] = -3e38f;
        for (float got : there_and_back(odd, type)) EXPECT_TRUE(std::isfinite(got));
    }
}

TEST(PackBlocks, OneTypeTakesThePlaceOfAnother) {
    EXPECT_EQ(type_for(DType::Q4_K, 512), DType::Q4_K);
    EXPECT_EQ(type_for(DType::Q4_K, 704), DType::Q5_0);
    EXPECT_EQ(type_for(DType::Q5_K, 96), DType::Q5_1);
    EXPECT_EQ(type_for(DType::Q6_K, 96), DType::Q8_0);
    EXPECT_EQ(type_for(DType::Q8_0, 33), DType::Q8_0);  // refused when it is loaded
    for (DType type : kWeightTypes) EXPECT_TRUE(can_pack(type)) << name(type);
    EXPECT_FALSE(can_pack(DType::Q3_K));
    float value = 0;
    std::byte block[110];
    EXPECT_THROW(pack(block, &value, DType::Q3_K, 1), std::logic_error);
}

}  // namespace
}  // namespace aerie
