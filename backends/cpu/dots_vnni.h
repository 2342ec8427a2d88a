// Dot products by VNNI, of AVX-512 or of AVX: unsigned weight bytes times signed activations, four
// products a lane.
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
inline Bytes low_nibbles(Bytes w) {
    return _mm512_and_si512(w, _mm512_set1_epi8(15));
}
inline Bytes high_nibbles(Bytes w) {
    return low_nibbles(_mm512_srli_epi16(w, 4));
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
inline Bytes low_nibbles(Bytes w) {
    return _mm256_and_si256(w, _mm256_set1_epi8(15));
}
inline Bytes high_nibbles(Bytes w) {
    return low_nibbles(_mm256_srli_epi16(w, 4));
}
inline void store_bytes(int32_t* p, Bytes a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a);
}
#endif

constexpr int kSignedOffset = 128;

// A part of step s: unsigned bytes.
template <Range range>
inline Bytes load_weights(const uint8_t* panel, int s, int part) {
    const size_t place = size_t(part) * sizeof(Bytes);
    if (range == Range::nibbles) {
        const Bytes both = load_bytes(panel + s / 2 * kStepBytes + place);
        return s % 2 ? high_nibbles(both) : low_nibbles(both);
    }
    const Bytes bytes = load_bytes(panel + s * kStepBytes + place);
    return range == Range::bytes ? flip_signs(bytes) : bytes;
}

template <Range range, int C, int first, int last>
inline void dots(F32x16 (&out)[C], const uint8_t* panel, const uint8_t* packed, int half) {
    Bytes sums[C][kStepParts];
    for (int c = 0; c < C; ++c)
        for (Bytes& sum : sums[c]) sum = repeat(half < 0 ? 0 : Packed<C>::begin(packed, half, c));
#pragma GCC unroll 8
    for (int s = first; s < last; ++s) {
        Bytes w[kStepParts];
        for (int p = 0; p < kStepParts; ++p) w[p] = load_weights<range>(panel, s, p);
        for (int c = 0; c < C; ++c) {
            const Bytes x = repeat(Packed<C>::four_bytes(packed, s, c));
            for (int p = 0; p < kStepParts; ++p) sums[c][p] = add_dots(sums[c][p], w[p], x);
        }
    }
    for (int c = 0; c < C; ++c) {
        int32_t lanes[kLanes];  // for the compiler alone
        for (int p = 0; p < kStepParts; ++p)
            store_bytes(lanes + p * kLanes / kStepParts, sums[c][p]);
        out[c] = to_float(load(lanes));
    }
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
