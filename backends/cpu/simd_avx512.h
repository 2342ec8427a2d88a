// Sixteen lanes as one AVX-512 register (AVX-512F alone).
#pragma once

#include <immintrin.h>
#include <stdint.h>

namespace aerie::cpu::AERIE_ISA {
namespace {

struct F32x16 {
    __m512 v;
};
struct U32x16 {
    __m512i v;
};
struct Mask16 {
    __mmask16 v;
};

inline F32x16 splat(float x) {
    return {_mm512_set1_ps(x)};
}
inline U32x16 splat_u32(uint32_t x) {
    return {_mm512_set1_epi32(int(x))};
}
inline U32x16 iota() {
    return {_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)};
}

inline F32x16 load(const float* p) {
    return {_mm512_loadu_ps(p)};
}
inline void store(float* p, F32x16 a) {
    _mm512_storeu_ps(p, a.v);
}

inline F32x16 load_f16(const void* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
inline F32x16 load_bf16(const void* p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
inline void store_f16(void* p, F32x16 a) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}

inline F32x16 load_i8(const void* p) {
    const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}

inline F32x16 operator+(F32x16 a, F32x16 b) {
    return {_mm512_add_ps(a.v, b.v)};
}
inline F32x16 operator-(F32x16 a, F32x16 b) {
    return {_mm512_sub_ps(a.v, b.v)};
}
inline F32x16 operator*(F32x16 a, F32x16 b) {
    return {_mm512_mul_ps(a.v, b.v)};
}
inline F32x16 operator/(F32x16 a, F32x16 b) {
    return {_mm512_div_ps(a.v, b.v)};
}
inline F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
// a > b ? a : b, so b where either is NaN.
inline F32x16 max(F32x16 a, F32x16 b) {
    return {_mm512_max_ps(a.v, b.v)};
}

inline Mask16 operator<(F32x16 a, F32x16 b) {
    return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
inline Mask16 operator<=(F32x16 a, F32x16 b) {
    return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)};
}
inline Mask16 operator&(Mask16 a, Mask16 b) {
    return {__mmask16(a.v & b.v)};
}
inline uint32_t bits(Mask16 m) {
    return m.v;
}
inline F32x16 select(Mask16 m, F32x16 yes, F32x16 no) {
    return {_mm512_mask_blend_ps(m.v, no.v, yes.v)};
}
inline U32x16 select(Mask16 m, U32x16 yes, U32x16 no) {
    return {_mm512_mask_blend_epi32(m.v, no.v, yes.v)};
}

inline F32x16 as_float(U32x16 a) {
    return {_mm512_castsi512_ps(a.v)};
}
inline U32x16 as_u32(F32x16 a) {
    return {_mm512_castps_si512(a.v)};
}

inline U32x16 operator+(U32x16 a, U32x16 b) {
    return {_mm512_add_epi32(a.v, b.v)};
}
inline U32x16 operator-(U32x16 a, U32x16 b) {
    return {_mm512_sub_epi32(a.v, b.v)};
}
inline U32x16 operator^(U32x16 a, U32x16 b) {
    return {_mm512_xor_si512(a.v, b.v)};
}
inline U32x16 operator&(U32x16 a, U32x16 b) {
    return {_mm512_and_si512(a.v, b.v)};
}
template <int n>
inline U32x16 shift_left(U32x16 a) {
    return {_mm512_slli_epi32(a.v, n)};
}
template <int n>
inline U32x16 shift_right(U32x16 a) {
    return {_mm512_srli_epi32(a.v, n)};
}
template <int n>
inline U32x16 shift_right_signed(U32x16 a) {
    return {_mm512_srai_epi32(a.v, n)};
}
struct WideProduct {
    U32x16 high, low;
};
inline WideProduct multiply(U32x16 a, uint32_t b) {
    const __m512i factor = _mm512_set1_epi32(int(b));
    const __m512i even = _mm512_mul_epu32(a.v, factor);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a.v, 32), factor);
    return {{_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd)},
            {_mm512_mullo_epi32(a.v, factor)}};
}
inline U32x16 load(const int32_t* p) {
    return {_mm512_loadu_si512(p)};
}
inline F32x16 to_float(U32x16 a) {
    return {_mm512_cvtepi32_ps(a.v)};
}  // as signed

// Replaces 64 bytes, each below 16, by their entries in a table.
inline void look_up(uint8_t* bytes, const int8_t (&table)[16]) {
    const __m512i values =
        _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
    _mm512_storeu_si512(bytes, _mm512_shuffle_epi8(values, _mm512_loadu_si512(bytes)));
}

// The largest lane; no lane is NaN.
inline float largest_lane(F32x16 a) {
    return _mm512_reduce_max_ps(a.v);
}

inline void store_low_bytes(void* p, U32x16 a) {
    _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}

// Lanes 8 apart, then 4 apart; simd.h has the rest of the tree.
inline __m128 sum_to_4(F32x16 a) {
    const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a.v), 1));
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), high);
    return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
}

// The fixed tree of a sum for eight or sixteen vectors at once: lanes 8 apart, then 4, 2 and 1.
// Each step adds the halves of two vectors, and leaves their sums in one.
inline F32x16 add_8_apart(F32x16 a, F32x16 b) {
    return {
        _mm512_add_ps(_mm512_shuffle_f32x4(a.v, b.v, 0x44), _mm512_shuffle_f32x4(a.v, b.v, 0xee))};
}
inline F32x16 add_4_apart(F32x16 a, F32x16 b) {
    return {
        _mm512_add_ps(_mm512_shuffle_f32x4(a.v, b.v, 0x88), _mm512_shuffle_f32x4(a.v, b.v, 0xdd))};
}
inline F32x16 add_2_apart(F32x16 a, F32x16 b) {
    return {_mm512_add_ps(_mm512_shuffle_ps(a.v, b.v, 0x44), _mm512_shuffle_ps(a.v, b.v, 0xee))};
}
inline F32x16 add_1_apart(F32x16 a, F32x16 b) {
    return {_mm512_add_ps(_mm512_shuffle_ps(a.v, b.v, 0x88), _mm512_shuffle_ps(a.v, b.v, 0xdd))};
}
// The sums 4 apart of a[0], a[step], a[2 * step] and a[3 * step], four lanes of each.
inline F32x16 add_four(const F32x16* a, int step) {
    return add_4_apart(add_8_apart(a[0], a[step]), add_8_apart(a[2 * step], a[3 * step]));
}
inline void sum8(float* out, const F32x16* a) {
    const F32x16 two = add_2_apart(add_four(a, 2), add_four(a + 1, 2));
    const __m512d pairs = _mm512_castps_pd(add_1_apart(two, two).v);
    const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6);
    _mm256_storeu_ps(out,
                     _mm512_castps512_ps256(_mm512_castpd_ps(_mm512_permutexvar_pd(even, pairs))));
}
inline void sum16(float* out, const F32x16* a) {
    const F32x16 low = add_2_apart(add_four(a, 4), add_four(a + 1, 4));
    const F32x16 high = add_2_apart(add_four(a + 2, 4), add_four(a + 3, 4));
    store(out, add_1_apart(low, high));
}

// A register of lanes, for loops that must count registers.
using Part = F32x16;
constexpr int kParts = 1;
constexpr int kRegisters = 32;
inline Part splat_part(float x) {
    return splat(x);
}
inline void store_part(float* p, Part a) {
    store(p, a);
}
inline Part load_part(const float* p) {
    return load(p);
}
inline Part load_part_f16(const void* p) {
    return load_f16(p);
}
inline Part load_part_bf16(const void* p) {
    return load_bf16(p);
}
// Keeps a value in a register from here on: g++ would load it again for each use.
inline Part held(Part a) {
    asm("" : "+v"(a.v));
    return a;
}
inline void split(Part* parts, F32x16 a) {
    parts[0] = a;
}
inline F32x16 join(const Part* parts) {
    return parts[0];
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
