// Dot products of unsigned weight bytes (Q8: magnitudes, Q4: nibbles) with signed activations.
#pragma once

#include <immintrin.h>

namespace aerie::cpu::AERIE_ISA {
namespace {

// In a register from here on: g++ would reorder the unrolled loop until they no longer fit.
inline __m256i held(__m256i a) {
    asm("" : "+x"(a));
    return a;
}

// Eight rows of a step.
inline __m256i load_half(const uint8_t* step, int half) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(step + half * 32));
}

inline __m256i broadcast(const void* four_bytes) {
    int32_t word;
    __builtin_memcpy(&word, four_bytes, sizeof(word));
    return _mm256_set1_epi32(word);
}

// Sixteen rows.
inline void store_dots(int32_t* dots, __m256i lo, __m256i hi) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(dots), lo);
    _mm256_store_si256(reinterpret_cast<__m256i*>(dots) + 1, hi);
}

template <Quant type>
struct Dots;

// Packed: [step][column] four int8, then [column] f32 scales. Unsigned times signed bytes: a weight
// lends its sign to the activation. A sum of two products stays within 16 bits: 2 * 128 * 127.
template <>
struct Dots<Quant::Q8> : ScalesBehind {
    static constexpr int kColumns = 4;

    template <int C>
    static void multiply(int32_t (*out)[kLanes], const uint8_t* panel, const uint8_t* packed) {
        const __m256i ones = _mm256_set1_epi16(1);
        __m256i dots[2][C] = {};
#pragma GCC unroll 8
        for (int s = 0; s < kSteps; ++s) {
            const __m256i w[2] = {load_half(panel + s * 64, 0), load_half(panel + s * 64, 1)};
            const __m256i size[2] = {_mm256_abs_epi8(w[0]), _mm256_abs_epi8(w[1])};
            for (int c = 0; c < C; ++c) {
                const __m256i x = broadcast(packed + (s * C + c) * 4);
                for (int half = 0; half < 2; ++half) {
                    const __m256i pairs =
                        held(_mm256_maddubs_epi16(size[half], _mm256_sign_epi8(x, w[half])));
                    const __m256i sums = held(_mm256_madd_epi16(pairs, ones));
                    dots[half][c] = held(_mm256_add_epi32(dots[half][c], sums));
                }
            }
        }
        for (int c = 0; c < C; ++c) store_dots(out[c], dots[0][c], dots[1][c]);
    }

    template <int C>
    static void pack(uint8_t* to, int column, const BlockI8G32& group) {
        put_elements<C>(to, column, group);
        put_scale<C>(to, column, group.scale);
    }
};

// Eight sums of two products stay within 16 bits: 8 * 2 * 15 * 127 < 32768.
template <>
struct Dots<Quant::Q4> : OffsetsBehind<8> {
    static constexpr int kColumns = 4;

    template <int C>
    static void multiply(int32_t (*out)[kLanes], const uint8_t* panel, const uint8_t* packed) {
        const __m256i nibble = _mm256_set1_epi8(15);
        __m256i dots[2][C] = {};
        for (int s = 0; s < kSteps; s += 2) {
            __m256i low[2], high[2];
            for (int half = 0; half < 2; ++half) {
                const __m256i w = load_half(panel + s * 32, half);
                low[half] = _mm256_and_si256(w, nibble);
                high[half] = _mm256_and_si256(_mm256_srli_epi16(w, 4), nibble);
            }
            for (int c = 0; c < C; ++c) {
                const __m256i x_low = broadcast(packed + (s * C + c) * 4);
                for (int half = 0; half < 2; ++half)
                    dots[half][c] = held(
                        _mm256_add_epi16(dots[half][c], _mm256_maddubs_epi16(low[half], x_low)));
                const __m256i x_high = broadcast(packed + ((s + 1) * C + c) * 4);
                for (int half = 0; half < 2; ++half)
                    dots[half][c] = held(
                        _mm256_add_epi16(dots[half][c], _mm256_maddubs_epi16(high[half], x_high)));
            }
        }
        const __m256i ones = _mm256_set1_epi16(1);
        for (int c = 0; c < C; ++c) {
            const __m256i offset = broadcast(packed + kOffsetOffset * C + 4 * c);
            const __m256i lo = _mm256_add_epi32(_mm256_madd_epi16(dots[0][c], ones), offset);
            const __m256i hi = _mm256_add_epi32(_mm256_madd_epi16(dots[1][c], ones), offset);
            store_dots(out[c], lo, hi);
        }
    }
};

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
