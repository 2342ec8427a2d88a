// Sixteen lanes as two AVX2 registers (with FMA and F16C).
#pragma once

#include <immintrin.h>
#include <stdint.h>

namespace aerie::cpu::AERIE_ISA {
namespace {

// A register of lanes, for loops that must count registers.
struct Part {
    __m256 v;
};
constexpr int kParts = 2;
constexpr int kRegisters = 16;

struct F32x16 {
    __m256 lo, hi;
};
struct U32x16 {
    __m256i lo, hi;
};
struct Mask16 {
    __m256 lo, hi;
};

inline F32x16 splat(float x) {
    return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
inline U32x16 splat_u32(uint32_t x) {
    return {_mm256_set1_epi32(int(x)), _mm256_set1_epi32(int(x))};
}
inline U32x16 iota() {
    return {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
            _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)};
}

inline Part splat_part(float x) {
    return {_mm256_set1_ps(x)};
}
inline void store_part(float* p, Part a) {
    _mm256_storeu_ps(p, a.v);
}
inline Part load_part(const float* p) {
    return {_mm256_loadu_ps(p)};
}
inline Part load_part_f16(const void* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)))};
}
inline Part load_part_bf16(const void* p) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
}
inline Part fma(Part a, Part b, Part c) {
    return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
inline Part operator*(Part a, Part b) {
    return {_mm256_mul_ps(a.v, b.v)};
}
inline Part operator+(Part a, Part b) {
    return {_mm256_add_ps(a.v, b.v)};
}
// Keeps a value in a register from here on: g++ would load it again for each use.
inline Part held(Part a) {
    asm("" : "+x"(a.v));
    return a;
}
inline F32x16 join(const Part* parts) {
    return {parts[0].v, parts[1].v};
}
// Keeps a value in registers from here on: g++ would load or spill them for each use.
inline F32x16 held(F32x16 a) {
    asm("" : "+x"(a.lo), "+x"(a.hi));
    return a;
}
inline void split(Part* parts, F32x16 a) {
    parts[0] = {a.lo};
    parts[1] = {a.hi};
}

inline F32x16 load(const float* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
inline void store(float* p, F32x16 a) {
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}
inline F32x16 load_f16(const void* p) {
    const char* q = static_cast<const char*>(p);
    return {load_part_f16(q).v, load_part_f16(q + 16).v};
}
inline F32x16 load_bf16(const void* p) {
    const char* q = static_cast<const char*>(p);
    return {load_part_bf16(q).v, load_part_bf16(q + 16).v};
}
inline F32x16 load_i8(const void* p) {
    const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
inline void store_f16(void* p, F32x16 a) {
    __m128i* q = static_cast<__m128i*>(p);
    _mm_storeu_si128(q, _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(q + 1, _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}

inline F32x16 operator+(F32x16 a, F32x16 b) {
    return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
inline F32x16 operator-(F32x16 a, F32x16 b) {
    return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
inline F32x16 operator*(F32x16 a, F32x16 b) {
    return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
inline F32x16 operator/(F32x16 a, F32x16 b) {
    return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
inline F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
// a > b ? a : b, so b where either is NaN.
inline F32x16 max(F32x16 a, F32x16 b) {
    return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}

inline Mask16 operator<(F32x16 a, F32x16 b) {
    return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
inline Mask16 operator<=(F32x16 a, F32x16 b) {
    return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LE_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LE_OQ)};
}
inline Mask16 operator&(Mask16 a, Mask16 b) {
    return {_mm256_and_ps(a.lo, b.lo), _mm256_and_ps(a.hi, b.hi)};
}
inline uint32_t bits(Mask16 m) {
    return uint32_t(_mm256_movemask_ps(m.lo)) | uint32_t(_mm256_movemask_ps(m.hi)) << 8;
}
inline F32x16 select(Mask16 m, F32x16 yes, F32x16 no) {
    return {_mm256_blendv_ps(no.lo, yes.lo, m.lo), _mm256_blendv_ps(no.hi, yes.hi, m.hi)};
}

inline F32x16 as_float(U32x16 a) {
    return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)};
}
inline U32x16 as_u32(F32x16 a) {
    return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)};
}
inline U32x16 select(Mask16 m, U32x16 yes, U32x16 no) {
    return as_u32(select(m, as_float(yes), as_float(no)));
}

inline U32x16 operator+(U32x16 a, U32x16 b) {
    return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
inline U32x16 operator-(U32x16 a, U32x16 b) {
    return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
inline U32x16 operator^(U32x16 a, U32x16 b) {
    return {_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)};
}
inline U32x16 operator&(U32x16 a, U32x16 b) {
    return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
template <int n>
inline U32x16 shift_left(U32x16 a) {
    return {_mm256_slli_epi32(a.lo, n), _mm256_slli_epi32(a.hi, n)};
}
template <int n>
inline U32x16 shift_right(U32x16 a) {
    return {_mm256_srli_epi32(a.lo, n), _mm256_srli_epi32(a.hi, n)};
}
template <int n>
inline U32x16 shift_right_signed(U32x16 a) {
    return {_mm256_srai_epi32(a.lo, n), _mm256_srai_epi32(a.hi, n)};
}
struct WideProduct {
    U32x16 high, low;
};
inline WideProduct multiply(U32x16 a, uint32_t b) {
    const __m256i factor = _mm256_set1_epi32(int(b));
    const auto high = [&](__m256i x) {  // even lanes, then odd ones
        const __m256i even = _mm256_mul_epu32(x, factor);
        const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), factor);
        return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    };
    return {{high(a.lo), high(a.hi)},
            {_mm256_mullo_epi32(a.lo, factor), _mm256_mullo_epi32(a.hi, factor)}};
}
inline U32x16 load(const int32_t* p) {
    const __m256i* q = reinterpret_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}
inline F32x16 to_float(U32x16 a) {  // as signed
    return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)};
}

// Replaces 64 bytes, each below 16, by their entries in a table.
inline void look_up(uint8_t* bytes, const int8_t (&table)[16]) {
    const __m256i values =
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
    __m256i* halves = reinterpret_cast<__m256i*>(bytes);
    for (int i = 0; i < 2; ++i)
        _mm256_storeu_si256(halves + i,
                            _mm256_shuffle_epi8(values, _mm256_loadu_si256(halves + i)));
}

// The largest lane; no lane is NaN.
inline float largest_lane(F32x16 a) {
    const __m256 eight = _mm256_max_ps(a.lo, a.hi);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

inline void store_low_bytes(void* p, U32x16 a) {
    const __m256i low = _mm256_set1_epi32(255);
    const __m256i words =  // lanes 0-3, 8-11, 4-7, 12-15
        _mm256_packus_epi32(_mm256_and_si256(a.lo, low), _mm256_and_si256(a.hi, low));
    const __m256i bytes = _mm256_packus_epi16(words, words);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5);
    _mm_storeu_si128(static_cast<__m128i*>(p),
                     _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(bytes, order)));
}

// The fixed tree of a sum for eight vectors at once: lanes 8 apart, then 4, 2 and 1.
inline void sum8(float* out, const F32x16* a) {
    const auto four_apart = [a](int i, int j) {
        const __m256 x = _mm256_add_ps(a[i].lo, a[i].hi), y = _mm256_add_ps(a[j].lo, a[j].hi);
        return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20),
                             _mm256_permute2f128_ps(x, y, 0x31));
    };
    const auto two_apart = [&](int i, int j) {
        const __m256 x = four_apart(i, i + 4), y = four_apart(j, j + 4);
        return _mm256_add_ps(_mm256_shuffle_ps(x, y, 0x44), _mm256_shuffle_ps(x, y, 0xee));
    };
    const __m256 x = two_apart(0, 1), y = two_apart(2, 3);
    _mm256_storeu_ps(out,
                     _mm256_add_ps(_mm256_shuffle_ps(x, y, 0x88), _mm256_shuffle_ps(x, y, 0xdd)));
}
inline void sum16(float* out, const F32x16* a) {
    sum8(out, a);
    sum8(out + 8, a + 8);
}

// Lanes 8 apart, then 4 apart; simd.h has the rest of the tree.
inline __m128 sum_to_4(F32x16 a) {
    const __m256 eight = _mm256_add_ps(a.lo, a.hi);
    return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
