// noise has the bits of core/rng.h, and that definition is a standard Gumbel distribution.
#include <cmath>

#include "core/rng.h"
#include "ops/device_test.h"

namespace aerie {

using namespace reference;

namespace {

class NoiseTest : public DeviceTest {};

TEST_P(NoiseTest, HasTheBitsOfTheScalarDefinition) {
    Indices positions(1, 4);
    positions.data = {0, 1, 777, 2'000'000'000};
    for (int vocab : {1, 15, 16, 64, 100, 4096, 32003})
        for (uint64_t seed : {uint64_t(0), uint64_t(0xfedcba9876543210)}) {
            Array out = poisoned(4, vocab);
            backend_->run(Noise{out, seed, upload(positions)});
            const Matrix got = download(out);
            for (int p = 0; p < 4; ++p)
                for (int token = 0; token < vocab; ++token) {
                    const float want = gumbel(seed, positions.data[size_t(p)], token);
                    ASSERT_TRUE(same_bits(&got[p][token], &want, 1)) << p << " " << token;
                }
        }
}

TEST_P(NoiseTest, HasTheMomentsOfAGumbelDistribution) {
    Indices positions(1, 8);
    positions.data = {0, 1, 2, 3, 4, 5, 6, 7};
    Array out = poisoned(8, 32768);
    backend_->run(Noise{out, 42, upload(positions)});
    const Matrix got = download(out);
    const double count = double(got.data.size());
    double mean = 0, variance = 0;
    for (float g : got.data) mean += g / count;
    for (float g : got.data) variance += (g - mean) * (g - mean) / count;
    EXPECT_NEAR(mean, 0.5772156649, 5 * 1.2825 / std::sqrt(count));
    EXPECT_NEAR(variance, 1.6449340668, 5 * 3.0 / std::sqrt(count));
}

INSTANTIATE_TEST_SUITE_P(Devices, NoiseTest, testing::ValuesIn(devices()), device_name);

TEST(Gumbel, IsCloseToDoublesAndMonotone) {
    const auto check = [](uint64_t first, uint64_t last, uint64_t step) {
        float before = gumbel_of(uint32_t(first));
        for (uint64_t word = first; word <= last; word += step) {
            const float got = gumbel_of(uint32_t(word));
            ASSERT_NEAR(got, -std::log(-std::log1p(-(double(word) + 0.5) * 0x1p-32)), 1e-6) << word;
            ASSERT_LE(got, before) << word;
            before = got;
        }
    };
    check(0, 0xffffffff, 65521);
    check(0, 1 << 16, 1);
    check(0xffff0000, 0xffffffff, 1);
    const uint64_t switch_over = uint64_t(0.29289 * 0x1p32);  // from one series to the other
    check(switch_over - 50000, switch_over + 50000, 1);
}

// Known answers of Philox4x32-10 (Random123's kat_vectors).
TEST(Philox, KnownAnswers) {
    EXPECT_EQ(philox(0, {0, 0, 0, 0}),
              (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(philox(~uint64_t(0), {~0u, ~0u, ~0u, ~0u}),
              (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
              (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

}  // namespace
}  // namespace aerie
