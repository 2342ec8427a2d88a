// Sixteen virtual lanes: the one vector type that the kernels are written against. Every operation
// gives the same bits on every instruction set, fused multiply-add included.
#pragma once

#if defined(__AVX512F__)
#include "cpu/simd_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include "cpu/simd_avx2.h"
#else
#include "cpu/simd_portable.h"
#endif

#include "core/dtype.h"
#include "cpu/kernels.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

#ifdef __AVX2__
// The fixed tree of a sum: lanes 8 apart, then 4, 2 and 1.
inline float sum(F32x16 a) {
    const __m128 four = sum_to_4(a);
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline void sum4(float* out, const F32x16* a) {
    const __m128 s0 = sum_to_4(a[0]), s1 = sum_to_4(a[1]);
    const __m128 s2 = sum_to_4(a[2]), s3 = sum_to_4(a[3]);
    // Lanes of s0 and s1 interleaved: the sums 2 apart, then those 1 apart.
    const __m128 t01 = _mm_add_ps(_mm_unpacklo_ps(s0, s1), _mm_unpackhi_ps(s0, s1));
    const __m128 t23 = _mm_add_ps(_mm_unpacklo_ps(s2, s3), _mm_unpackhi_ps(s2, s3));
    _mm_storeu_ps(out, _mm_add_ps(_mm_movelh_ps(t01, t23), _mm_movehl_ps(t23, t01)));
}
#endif

// The sums of `count` vectors, sixteen at once as far as possible.
template <int count>
[[gnu::always_inline]] inline void sum_all(float* out, const F32x16* a) {
    int done = 0;
    for (; done + 16 <= count; done += 16) sum16(out + done, a + done);
    for (; done + 8 <= count; done += 8) sum8(out + done, a + done);
    for (; done + 4 <= count; done += 4) sum4(out + done, a + done);
    for (; done < count; ++done) out[done] = sum(a[done]);
}

// A number as a type, for loops with constant bounds.
template <int n>
struct Constant {
    static constexpr int value = n;
};

constexpr int kLanes = 16;
constexpr int kPartLanes = kLanes / kParts;

inline F32x16 load(const Half* p) {
    return load_f16(p);
}
inline F32x16 load(const Brain* p) {
    return load_bf16(p);
}
inline Part load_part(const Half* p) {
    return load_part_f16(p);
}
inline Part load_part(const Brain* p) {
    return load_part_bf16(p);
}
inline void store(Half* p, F32x16 v) {
    store_f16(p, v);
}

inline void store(Brain* p, F32x16 v) {
    float lanes[kLanes];
    store(lanes, v);
    for (int i = 0; i < kLanes; ++i) p[i].bits = f32_to_bf16(lanes[i]);
}

// The first n < 16 elements; the other lanes are `fill`.
template <class T>
inline F32x16 load_first(const T* p, int n) {
    T lanes[kLanes] = {};
    __builtin_memcpy(lanes, p, size_t(n) * sizeof(T));
    return load(lanes);
}

inline F32x16 load_first(const float* p, int n, float fill) {
    float lanes[kLanes];
    for (float& lane : lanes) lane = fill;
    __builtin_memcpy(lanes, p, size_t(n) * sizeof(float));
    return load(lanes);
}

template <class T>
inline void store_first(T* p, F32x16 v, int n) {
    T lanes[kLanes];
    store(lanes, v);
    __builtin_memcpy(p, lanes, size_t(n) * sizeof(T));
}

// Calls body(i, 16) for each full group of lanes and body(i, rest) for what is left.
template <class Body>
inline void for_lanes(int count, Body body) {
    int i = 0;
    for (; i + kLanes <= count; i += kLanes) body(i, kLanes);
    if (i < count) body(i, count - i);
}

template <class T>
inline F32x16 load_some(const T* p, int n) {
    return n == kLanes ? load(p) : load_first(p, n);
}

template <class T>
inline void store_some(T* p, F32x16 v, int n) {
    if (n == kLanes)
        store(p, v);
    else
        store_first(p, v, n);
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
