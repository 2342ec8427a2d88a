// The dot products by VNNI (of AVX-512, and of AVX) on a model of their instructions: CI's machines
// need not have them.
#include <gtest/gtest.h>

#include <random>

#include "cpu/dots.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// Element k of row r of a panel, by the layout in kernels.h.
int element(Quant type, const uint8_t* panel, int r, int k) {
    if (type == Quant::Q8) return int8_t(panel[(k / 4 * kStripRows + r) * 4 + k % 4]);
    const int byte = panel[(k / 8 * kStripRows + r) * 4 + k % 4];
    return (k % 8 < 4 ? byte & 15 : byte >> 4) - 8;
}

template <Quant type, int C>
void expect_exact_dots(std::mt19937& random) {
    alignas(64) uint8_t panel[panel_bytes(type)];
    for (uint8_t& byte : panel) byte = uint8_t(random());
    BlockI8G32 groups[C];
    alignas(64) uint8_t packed[C * kPackedGroupBytes];
    for (int c = 0; c < C; ++c) {
        groups[c].scale = float(c) + 0.5f;
        for (int8_t& q : groups[c].q) q = int8_t(int(random() % 255) - 127);
        Dots<type>::template pack<C>(packed, c, groups[c]);
    }
    alignas(64) int32_t dots[C][kLanes];
    Dots<type>::template multiply<C>(dots, panel, packed);
    for (int c = 0; c < C; ++c) {
        EXPECT_EQ(Dots<type>::template scale<C>(packed, c), groups[c].scale);
        for (int r = 0; r < kStripRows; ++r) {
            int32_t exact = 0;
            for (int k = 0; k < kPanelElements; ++k)
                exact += element(type, panel, r, k) * groups[c].q[k];
            EXPECT_EQ(dots[c][r], exact) << "row " << r << ", column " << c << " of " << C;
        }
    }
}

template <Quant type>
void expect_exact_dots() {
    std::mt19937 random(7);
    for (int panel = 0; panel < 50; ++panel)
        [&]<int... columns>(std::integer_sequence<int, columns...>) {
            (expect_exact_dots<type, columns + 1>(random), ...);
        }
    (std::make_integer_sequence<int, Dots<type>::kColumns>());
}

TEST(Vnni, Q8DotsAreExact) {
    expect_exact_dots<Quant::Q8>();
}
TEST(Vnni, Q4DotsAreExact) {
    expect_exact_dots<Quant::Q4>();
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
