// Finding NaN and infinity among the numbers of a file, at any place and of any type.
#include "core/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace aerie {
namespace {

template <class Bits>
bool finite(const std::vector<Bits>& bits, DType type, DType as) {
    return all_finite(std::as_bytes(std::span(bits)), type, as);
}

// The truth by conversion: whether a value is still finite as `as`.
bool stays_finite(float value, DType as) {
    if (as == DType::F16) value = f16_to_f32(f32_to_f16(value));
    if (as == DType::BF16) value = bf16_to_f32(f32_to_bf16(value));
    return std::abs(value) <= std::numeric_limits<float>::max();
}

TEST(Finite, IsTrueOfEveryHalfThatIs) {
    for (DType type : {DType::F16, DType::BF16})
        for (DType as : {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0})
            for (uint32_t bits = 0; bits < 0x10000; ++bits) {
                const uint16_t half = uint16_t(bits);
                const float value = type == DType::F16 ? f16_to_f32(half) : bf16_to_f32(half);
                ASSERT_EQ(finite(std::vector<uint16_t>{half}, type, as), stays_finite(value, as))
                    << bits << " as " << name(as);
            }
}

TEST(Finite, IsTrueOfFloatsUpToTheLargest) {
    for (DType as : {DType::F32, DType::F16, DType::BF16, DType::Q8_0})
        for (uint32_t near : {0u, 0x477fe000u, 0x477ff000u, 0x7f7f0000u, 0x7f7f8000u, 0x7f800000u})
            for (uint32_t sign : {0u, 0x80000000u})
                for (int off = -3; off <= 3; ++off) {
                    const uint32_t bits = (near + uint32_t(off)) & 0x7fffffffu;
                    float value;
                    std::memcpy(&value, &bits, 4);
                    ASSERT_EQ(finite(std::vector<uint32_t>{bits | sign}, DType::F32, as),
                              stays_finite(value, as))
                        << std::hex << bits << " as " << name(as);
                }
}

TEST(Finite, FindsOneAnywhere) {
    for (size_t size : {1u, 3u, 4u, 5u, 2047u, 2048u, 2049u, 5000u}) {
        std::vector<uint16_t> halves(size, 0x7bff);
        EXPECT_TRUE(finite(halves, DType::F16, DType::F16));
        for (size_t place : {size_t(0), size / 3, size / 2, size - 1}) {
            halves[place] = 0xfc00;
            EXPECT_FALSE(finite(halves, DType::F16, DType::F16)) << place << " of " << size;
            halves[place] = 0xfbff;
        }
    }
}

}  // namespace
}  // namespace aerie
