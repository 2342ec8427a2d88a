// Dot products by AVX2: unsigned weight bytes times signed activations, with pairs of products in
// 16 bits.
#pragma once

#include <immintrin.h>

namespace aerie::cpu::AERIE_ISA {
namespace {

constexpr int kColumns = 4;
constexpr int kSignedOffset = 0;  // a weight's sign is moved to the activation instead
constexpr bool reads_codes(Codes) {
    return false;
}

// Keeps a value in a register from here on: g++ would reorder the unrolled loop until they no
// longer fit.
inline __m256i held(__m256i a) {
    asm("" : "+x"(a));
    return a;
}

// How many pairs of products 16 bits can hold: 8 * 2 * 15 * 127, 2 * 2 * 63 * 127 and 2 * 128 * 127
// are below 32768.
constexpr int pairs_together(Form form) {
    return form == Form::nibbles ? 8 : form == Form::small_bytes ? 2 : 1;
}

// Sums of pairs of products, eight rows each.
template <Form form>
inline __m256i pairs_of(__m256i w, __m256i x) {
    if (form != Form::signed_bytes) return _mm256_maddubs_epi16(w, x);
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}

// Eight rows of step s.
template <Form form>
inline __m256i load_weights(const uint8_t* panel, int s, int part) {
    const int at = (form == Form::nibbles ? s / 2 : s) * kStepBytes + part * 32;
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panel + at));
    if (form != Form::nibbles) return bytes;
    return _mm256_and_si256(s % 2 ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(15));
}

template <Form form, int C, int first, int last>
inline void dots(F32x16 (&out)[C], const uint8_t* panel, const uint8_t* packed, int half) {
    constexpr int kTogether =
        pairs_together(form) < last - first ? pairs_together(form) : last - first;
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sums[2][C];
    for (int c = 0; c < C; ++c)
        sums[0][c] = sums[1][c] =
            _mm256_set1_epi32(half < 0 ? 0 : Packed<C>::begin(packed, half, c));
#pragma GCC unroll 8
    for (int begin = first; begin < last; begin += kTogether) {
        __m256i pairs[2][C];
#pragma GCC unroll 8
        for (int s = begin; s < begin + kTogether; ++s) {
            __m256i w[2];
            for (int part = 0; part < 2; ++part) w[part] = load_weights<form>(panel, s, part);
            for (int c = 0; c < C; ++c) {
                const __m256i x = _mm256_set1_epi32(Packed<C>::four_bytes(packed, s, c));
                for (int part = 0; part < 2; ++part) {
                    const __m256i more = pairs_of<form>(w[part], x);
                    pairs[part][c] =
                        held(s == begin ? more : _mm256_add_epi16(pairs[part][c], more));
                }
            }
        }
        for (int c = 0; c < C; ++c)
            for (int part = 0; part < 2; ++part)
                sums[part][c] =
                    held(_mm256_add_epi32(sums[part][c], _mm256_madd_epi16(pairs[part][c], ones)));
    }
    for (int c = 0; c < C; ++c)
        out[c] = {_mm256_cvtepi32_ps(sums[0][c]), _mm256_cvtepi32_ps(sums[1][c])};
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
