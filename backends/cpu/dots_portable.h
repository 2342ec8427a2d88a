// Dot products by plain loops over the same panels.
#pragma once

#include <stdint.h>

namespace aerie::cpu::AERIE_ISA {
namespace {

constexpr int kColumns = 4;
constexpr int kSignedOffset = 0;
constexpr bool reads_codes(Codes) {
    return false;
}

// Element k of a row.
template <Form form>
inline int16_t weight(const uint8_t* panel, int row, int k) {
    const int in_step = row * 4 + k % 4, step = k / 4;
    if (form == Form::nibbles) return panel[step / 2 * kStepBytes + in_step] >> (step % 2 * 4) & 15;
    const uint8_t byte = panel[step * kStepBytes + in_step];
    return form == Form::signed_bytes ? int8_t(byte) : byte;
}

template <Form form, int C, int first, int last>
inline void dots(F32x16 (&out)[C], const uint8_t* panel, const uint8_t* packed, int half) {
    int16_t w[kPanelElements][kStripRows];
    for (int k = first * 4; k < last * 4; ++k)
        for (int r = 0; r < kStripRows; ++r) w[k][r] = weight<form>(panel, r, k);
    for (int c = 0; c < C; ++c) {
        int32_t sums[kStripRows];
        for (int32_t& sum : sums) sum = half < 0 ? 0 : Packed<C>::begin(packed, half, c);
        for (int k = first * 4; k < last * 4; ++k) {
            const int x = int8_t(packed[(k / 4 * C + c) * 4 + k % 4]);
            for (int r = 0; r < kStripRows; ++r) sums[r] += w[k][r] * x;
        }
        for (int r = 0; r < kStripRows; ++r) out[c].v[r] = float(sums[r]);
    }
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
