// Dot products by VNNI (in AVX-512 and in AVX) on a model of their instructions: CI's machines may
// lack them.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "cpu/dots.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

constexpr StripLayout kSigned = {Codes::bytes, Scales::one};
constexpr StripLayout kNibbles = {Codes::nibbles, Scales::one, 8};
constexpr StripLayout kHalves = {Codes::six_bits, Scales::halves, 32};
constexpr StripLayout kLeast = {Codes::five_bits, Scales::halves_least};

// Element k of row r.
template <Form form>
int weight(const uint8_t* panel, int r, int k) {
    const int step = k / 4;
    const auto bits = [&](int word, int shift, int count) {
        return panel[word * 64 + r * 4 + k % 4] >> shift & ((1 << count) - 1);
    };
    switch (form) {
        case Form::two_bits:
            return bits(step / 4, step % 4 * 2, 2);
        case Form::five_bits:
            return bits(step / 2, step % 2 * 4, 4) | bits(4, step, 1) << 4;
        case Form::six_bits:
            return bits(step / 2, step % 2 * 4, 4) | bits(4 + step / 4, step % 4 * 2, 2) << 4;
        case Form::nibbles:
            return bits(step / 2, step % 2 * 4, 4);
        case Form::small_bytes:
            return bits(step, 0, 8);
        case Form::signed_bytes:
            return int8_t(bits(step, 0, 8));
    }
    return 0;
}

template <Form form, int C, int first, int last>
void expect_exact_dots(const uint8_t* panel, const BlockI8G32 (&groups)[C], const uint8_t* packed,
                       int half, int offset) {
    F32x16 dots_of[C];
    dots<form, C, first, last>(dots_of, panel, packed, half);
    for (int c = 0; c < C; ++c) {
        float got[kLanes];
        store(got, dots_of[c]);
        for (int r = 0; r < kStripRows; ++r) {
            int32_t exact = 0;
            for (int k = first * 4; k < last * 4; ++k) {
                exact += (weight<form>(panel, r, k) - offset) * groups[c].q[k];
            }
            EXPECT_EQ(got[r], float(exact)) << "row " << r << ", column " << c << " of " << C;
        }
    }
}

template <int C>
void expect_exact_dots(std::mt19937& random) {
    alignas(64) uint8_t any[kPanelBytes], small[kPanelBytes];
    for (uint8_t& byte : any) byte = uint8_t(random());
    for (int i = 0; i < kPanelBytes; ++i) small[i] = any[i] & 63;
    BlockI8G32 groups[C];
    uint8_t of_signed[C * kPackedGroupBytes], of_nibbles[C * kPackedGroupBytes],
        of_halves[C * kPackedGroupBytes], of_least[C * kPackedGroupBytes];
    for (int c = 0; c < C; ++c) {
        groups[c].scale = float(c) + 0.5f;
        for (int8_t& q : groups[c].q) q = int8_t(int(random() % 255) - 127);
        for (int half = 0; half < 2; ++half) {
            const int8_t* from = groups[c].q + half * 16;
            groups[c].sums[half] = int16_t(std::accumulate(from, from + 16, 0));
        }
        Packed<C>::put(of_signed, c, groups[c], kSigned, kSignedOffset);
        Packed<C>::put(of_nibbles, c, groups[c], kNibbles, kNibbles.offset);
        Packed<C>::put(of_halves, c, groups[c], kHalves, kHalves.offset);
        Packed<C>::put(of_least, c, groups[c], kLeast, 0);
    }
    expect_exact_dots<Form::signed_bytes, C, 0, 8>(any, groups, of_signed, 0, 0);
    expect_exact_dots<Form::nibbles, C, 0, 8>(any, groups, of_nibbles, 0, 8);
    expect_exact_dots<Form::small_bytes, C, 0, 4>(small, groups, of_halves, 0, 32);
    expect_exact_dots<Form::small_bytes, C, 4, 8>(small, groups, of_halves, 1, 32);
    expect_exact_dots<Form::small_bytes, C, 0, 8>(small, groups, of_least, -1, 0);
    expect_exact_dots<Form::two_bits, C, 4, 8>(any, groups, of_least, -1, 0);
    expect_exact_dots<Form::five_bits, C, 0, 8>(any, groups, of_least, -1, 0);
    expect_exact_dots<Form::six_bits, C, 0, 4>(any, groups, of_halves, 0, 32);
    expect_exact_dots<Form::six_bits, C, 4, 8>(any, groups, of_halves, 1, 32);
    for (int c = 0; c < C; ++c) {
        EXPECT_EQ(Packed<C>::scale(of_signed, c), groups[c].scale);
        for (int half = 0; half < 2; ++half) {
            EXPECT_EQ(Packed<C>::sum(of_least, half, c), float(groups[c].sums[half]));
        }
    }
}

TEST(Vnni, DotsAreExact) {
    std::mt19937 random(7);
    for (int panel = 0; panel < 50; ++panel)
        [&]<int... columns>(std::integer_sequence<int, columns...>) {
            (expect_exact_dots<columns + 1>(random), ...);
        }
    (std::make_integer_sequence<int, kColumns>());
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
