// Dot products by VNNI: unsigned weight bytes times signed activations, four products a lane.
#pragma once

#include <immintrin.h>

namespace aerie::cpu::AERIE_ISA {
namespace {

inline __m512i broadcast(const void* four_bytes) {
    int32_t word;
    __builtin_memcpy(&word, four_bytes, sizeof(word));
    return _mm512_set1_epi32(word);
}

template <Quant type>
struct Dots;

// Packed: [step][column] four int8, then [column] f32 scales, then [column] the dot product's
// beginning: weights are unsigned here, `kOffset` too large, so -kOffset * sum of the group.
template <Quant type>
struct VnniDots : ScalesBehind {
    static constexpr int kColumns = 8;
    static constexpr int kOffsetOffset = kScaleOffset + 4;
    static constexpr int kOffset = type == Quant::Q8 ? 128 : 8;

    template <int C>
    static void multiply(int32_t (*out)[kLanes], const uint8_t* panel, const uint8_t* packed) {
        __m512i dots[C];
        for (int c = 0; c < C; ++c) dots[c] = broadcast(packed + kOffsetOffset * C + 4 * c);
        const auto multiply = [&](__m512i w, int step) {
            for (int c = 0; c < C; ++c)
                dots[c] = _mm512_dpbusd_epi32(dots[c], w, broadcast(packed + (step * C + c) * 4));
        };
        if constexpr (type == Quant::Q8) {
            for (int s = 0; s < kSteps; ++s)
                multiply(_mm512_xor_si512(_mm512_loadu_si512(panel + s * 64),
                                          _mm512_set1_epi8(char(0x80))),
                         s);
        } else {
            const __m512i nibble = _mm512_set1_epi8(15);
            for (int s = 0; s < kSteps; s += 2) {
                const __m512i w = _mm512_loadu_si512(panel + s * 32);
                multiply(_mm512_and_si512(w, nibble), s);
                multiply(_mm512_and_si512(_mm512_srli_epi16(w, 4), nibble), s + 1);
            }
        }
        for (int c = 0; c < C; ++c) _mm512_storeu_si512(out[c], dots[c]);
    }

    template <int C>
    static void pack(uint8_t* to, int column, const BlockI8G32& group) {
        int32_t sum = 0;
        for (int8_t q : group.q) sum += q;
        put_elements<C>(to, column, group);
        put_scale<C>(to, column, group.scale);
        reinterpret_cast<int32_t*>(to + kOffsetOffset * C)[column] = -kOffset * sum;
    }
};

template <>
struct Dots<Quant::Q8> : VnniDots<Quant::Q8> {};
template <>
struct Dots<Quant::Q4> : VnniDots<Quant::Q4> {};

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
