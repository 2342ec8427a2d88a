// Dot products by plain loops over the same panels.
#pragma once

#include <stdint.h>

namespace aerie::cpu::AERIE_ISA {
namespace {

template <Quant type>
struct Dots;

// Row r of the panel, element k.
inline int q8_element(const uint8_t* panel, int r, int k) {
    return int8_t(panel[(k / 4 * kStripRows + r) * 4 + k % 4]);
}
inline int q4_element(const uint8_t* panel, int r, int k) {
    const int byte = panel[(k / 8 * kStripRows + r) * 4 + k % 4];
    return (k % 8 < 4 ? byte & 15 : byte >> 4) - 8;
}

// Packed: the group as it is, one column after the other.
template <Quant type>
struct PlainDots {
    static constexpr int kColumns = 4;

    template <int C>
    static void multiply(int32_t (*out)[kLanes], const uint8_t* panel, const uint8_t* packed) {
        const BlockI8G32* columns = reinterpret_cast<const BlockI8G32*>(packed);
        int16_t w[kPanelElements][kStripRows];
        for (int k = 0; k < kPanelElements; ++k)
            for (int r = 0; r < kStripRows; ++r)
                w[k][r] =
                    int16_t(type == Quant::Q8 ? q8_element(panel, r, k) : q4_element(panel, r, k));
        for (int c = 0; c < C; ++c) {
            int32_t dots[kStripRows] = {};
            for (int k = 0; k < kPanelElements; ++k)
                for (int r = 0; r < kStripRows; ++r) dots[r] += w[k][r] * columns[c].q[k];
            for (int r = 0; r < kStripRows; ++r) out[c][r] = dots[r];
        }
    }

    template <int C>
    static float scale(const uint8_t* packed, int column) {
        return reinterpret_cast<const BlockI8G32*>(packed)[column].scale;
    }

    template <int C>
    static void pack(uint8_t* to, int column, const BlockI8G32& group) {
        reinterpret_cast<BlockI8G32*>(to)[column] = group;
    }
};

template <>
struct Dots<Quant::Q8> : PlainDots<Quant::Q8> {};
template <>
struct Dots<Quant::Q4> : PlainDots<Quant::Q4> {};

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
