// Dot products by VNNI, of AVX-512 or of AVX: unsigned weight bytes times signed activations, four
// products a lane.
#pragma once

#include <immintrin.h>

namespace aerie::cpu::AERIE_ISA {
namespace {

// The rows of a step, four bytes each, in one register or in two.
#ifdef __AVX512VNNI__
constexpr int kStepParts = 1;
constexpr int kVnniColumns = 8;
using Bytes = __m512i;

inline Bytes load_bytes(const void* p) {
    return _mm512_loadu_si512(p);
}
inline void store_dots(int32_t* p, Bytes a) {
    _mm512_storeu_si512(p, a);
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
#else
constexpr int kStepParts = 2;
constexpr int kVnniColumns = 4;
using Bytes = __m256i;

inline Bytes load_bytes(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
inline void store_dots(int32_t* p, Bytes a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a);
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
#endif

inline Bytes broadcast(const void* four_bytes) {
    int32_t word;
    __builtin_memcpy(&word, four_bytes, sizeof(word));
    return repeat(word);
}

template <Quant type>
struct Dots : OffsetsBehind<type == Quant::Q8 ? 128 : 8> {
    static constexpr int kColumns = kVnniColumns;
    static constexpr int kOffsetOffset = Dots::OffsetsBehind::kOffsetOffset;

    template <int C>
    static void multiply(int32_t (*out)[kLanes], const uint8_t* panel, const uint8_t* packed) {
        Bytes dots[C][kStepParts];
        for (int c = 0; c < C; ++c)
            for (Bytes& dot : dots[c]) dot = broadcast(packed + kOffsetOffset * C + 4 * c);
        const auto multiply = [&](const Bytes(&w)[kStepParts], int step) {
            for (int c = 0; c < C; ++c) {
                const Bytes x = broadcast(packed + (step * C + c) * 4);
                for (int p = 0; p < kStepParts; ++p) dots[c][p] = add_dots(dots[c][p], w[p], x);
            }
        };
        constexpr size_t kPartBytes = sizeof(Bytes);
        Bytes w[kStepParts], high[kStepParts];
        if constexpr (type == Quant::Q8) {
            for (int s = 0; s < kSteps; ++s) {
                for (int p = 0; p < kStepParts; ++p)
                    w[p] = flip_signs(load_bytes(panel + s * 64 + p * kPartBytes));
                multiply(w, s);
            }
        } else {
            for (int s = 0; s < kSteps; s += 2) {
                for (int p = 0; p < kStepParts; ++p) {
                    const Bytes both = load_bytes(panel + s * 32 + p * kPartBytes);
                    w[p] = low_nibbles(both);
                    high[p] = high_nibbles(both);
                }
                multiply(w, s);
                multiply(high, s + 1);
            }
        }
        for (int c = 0; c < C; ++c)
            for (int p = 0; p < kStepParts; ++p)
                store_dots(out[c] + p * kLanes / kStepParts, dots[c][p]);
    }
};

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
