// Dot products by VNNI, of AVX-512 or of AVX: unsigned weight bytes times signed activations, four
// products per lane.
#pragma once

#include <immintrin.h>

namespace aerie::cpu::AERIE_ISA {
namespace {

// The rows of a step, four bytes each, in one register or in two.
#ifdef __AVX512VNNI__
constexpr int kStepParts = 1;
constexpr int kColumns = 8;
using Bytes = __m512i;

inline Bytes load_bytes(const void* p) {
    return _mm512_loadu_si512(p);
}
inline Bytes repeat(int32_t four_bytes) {
    return _mm512_set1_epi32(four_bytes);
}
inline Bytes add_dots(Bytes sum, Bytes w, Bytes x) {
    return _mm512_dpbusd_epi32(sum, w, x);
}
inline Bytes flip_signs(Bytes w) {
    return _mm512_xor_si512(w, _mm512_set1_epi8(char(0x80)));
}
template <int count>
inline Bytes shift_left(Bytes w) {
    return _mm512_slli_epi16(w, count);
}
template <int count>
inline Bytes shift_right(Bytes w) {
    return _mm512_srli_epi16(w, count);
}
inline Bytes masked(Bytes w, int byte) {
    return _mm512_and_si512(w, _mm512_set1_epi8(char(byte)));
}
inline Bytes either(Bytes a, Bytes b) {
    return _mm512_or_si512(a, b);
}
inline void store_bytes(int32_t* p, Bytes a) {
    _mm512_storeu_si512(p, a);
}
#else
constexpr int kStepParts = 2;
constexpr int kColumns = 4;
using Bytes = __m256i;

inline Bytes load_bytes(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
inline Bytes repeat(int32_t four_bytes) {
    return _mm256_set1_epi32(four_bytes);
}
inline Bytes add_dots(Bytes sum, Bytes w, Bytes x) {
    return _mm256_dpbusd_avx_epi32(sum, w, x);
}
inline Bytes flip_signs(Bytes w) {
    return _mm256_xor_si256(w, _mm256_set1_epi8(char(0x80)));
}
template <int count>
inline Bytes shift_left(Bytes w) {
    return _mm256_slli_epi16(w, count);
}
template <int count>
inline Bytes shift_right(Bytes w) {
    return _mm256_srli_epi16(w, count);
}
inline Bytes masked(Bytes w, int byte) {
    return _mm256_and_si256(w, _mm256_set1_epi8(char(byte)));
}
inline Bytes either(Bytes a, Bytes b) {
    return _mm256_or_si256(a, b);
}
inline void store_bytes(int32_t* p, Bytes a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a);
}
#endif

constexpr int kSignedOffset = 128;

constexpr bool reads_codes(Codes codes) {
    return codes == Codes::two_bits || codes == Codes::five_bits || codes == Codes::six_bits;
}

// Moves `bits` bits of each byte from bit `from` to bit `to`, and clears the other bits.
template <int bits, int from, int to>
inline Bytes moved_bits(Bytes w) {
    constexpr int kMask = ((1 << bits) - 1) << to;
    if constexpr (from < to) return masked(shift_left<to - from>(w), kMask);
    if constexpr (from > to) return masked(shift_right<from - to>(w), kMask);
    return masked(w, kMask);
}

// Part `part` of step s, as unsigned bytes.
template <Form form, int s>
inline Bytes load_weights(const uint8_t* panel, int part) {
    const auto step = [&](int i) {
        return load_bytes(panel + i * kStepBytes + size_t(part) * sizeof(Bytes));
    };
    const auto nibble = [&] { return moved_bits<4, s % 2 * 4, 0>(step(s / 2)); };
    if constexpr (form == Form::nibbles) return nibble();
    if constexpr (form == Form::two_bits) return moved_bits<2, s % 4 * 2, 0>(step(s / 4));
    if constexpr (form == Form::five_bits) return either(nibble(), moved_bits<1, s, 4>(step(4)));
    if constexpr (form == Form::six_bits)
        return either(nibble(), moved_bits<2, s % 4 * 2, 4>(step(4 + s / 4)));
    if constexpr (form == Form::small_bytes) return step(s);
    if constexpr (form == Form::signed_bytes) return flip_signs(step(s));
}

template <Form form, int C, int s, int last>
inline void add_steps(Bytes (&sums)[C][kStepParts], const uint8_t* panel, const uint8_t* packed) {
    if constexpr (s < last) {
        Bytes w[kStepParts];
        for (int p = 0; p < kStepParts; ++p) w[p] = load_weights<form, s>(panel, p);
        for (int c = 0; c < C; ++c) {
            const Bytes x = repeat(Packed<C>::four_bytes(packed, s, c));
            for (int p = 0; p < kStepParts; ++p) sums[c][p] = add_dots(sums[c][p], w[p], x);
        }
        add_steps<form, C, s + 1, last>(sums, panel, packed);
    }
}

template <Form form, int C, int first, int last>
inline void dots(F32x16 (&out)[C], const uint8_t* panel, const uint8_t* packed, int half) {
    Bytes sums[C][kStepParts];
    for (int c = 0; c < C; ++c)
        for (Bytes& sum : sums[c]) sum = repeat(half < 0 ? 0 : Packed<C>::begin(packed, half, c));
    add_steps<form, C, first, last>(sums, panel, packed);
    for (int c = 0; c < C; ++c) {
        int32_t lanes[kLanes];  // no memory: the compiler removes it
        for (int p = 0; p < kStepParts; ++p)
            store_bytes(lanes + p * kLanes / kStepParts, sums[c][p]);
        out[c] = to_float(load(lanes));
    }
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
