// Sixteen lanes as plain arrays. These definitions are what the other instruction sets reproduce.
#pragma once

#include <stdint.h>

#include "core/dtype.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

struct F32x16 {
    float v[16];
};
struct U32x16 {
    uint32_t v[16];
};
struct Mask16 {
    uint32_t v[16];  // all ones or 0
};

template <class Vector, class Lane>
inline Vector each(Lane lane) {
    Vector out;
    for (int i = 0; i < 16; ++i) out.v[i] = lane(i);
    return out;
}

inline F32x16 splat(float x) {
    return each<F32x16>([=](int) { return x; });
}
inline U32x16 splat_u32(uint32_t x) {
    return each<U32x16>([=](int) { return x; });
}
inline U32x16 iota() {
    return each<U32x16>([](int i) { return uint32_t(i); });
}

inline F32x16 load(const float* p) {
    F32x16 out;
    __builtin_memcpy(out.v, p, sizeof(out.v));
    return out;
}
inline void store(float* p, F32x16 a) {
    __builtin_memcpy(p, a.v, sizeof(a.v));
}

inline F32x16 load_f16(const void* p) {
    uint16_t half[16];
    __builtin_memcpy(half, p, sizeof(half));
    return each<F32x16>([&](int i) {
        // The bits are taken as a float with the exponent bias of f16, then scaled: exact for
        // denormals too.
        const uint32_t magnitude = uint32_t(half[i] & 0x7fff) << 13;
        const float scaled = __builtin_bit_cast(float, magnitude) * 0x1p112f;
        const uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
        const uint32_t sign = uint32_t(half[i] & 0x8000) << 16;
        return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, scaled) | special | sign);
    });
}
inline F32x16 load_i8(const void* p) {
    int8_t bytes[16];
    __builtin_memcpy(bytes, p, sizeof(bytes));
    return each<F32x16>([&](int i) { return float(bytes[i]); });
}
inline F32x16 load_bf16(const void* p) {
    uint16_t brain[16];
    __builtin_memcpy(brain, p, sizeof(brain));
    return each<F32x16>([&](int i) { return __builtin_bit_cast(float, uint32_t(brain[i]) << 16); });
}
inline void store_f16(void* p, F32x16 a) {
    uint16_t half[16];
    for (int i = 0; i < 16; ++i) half[i] = f32_to_f16(a.v[i]);
    __builtin_memcpy(p, half, sizeof(half));
}

inline F32x16 operator+(F32x16 a, F32x16 b) {
    return each<F32x16>([&](int i) { return a.v[i] + b.v[i]; });
}
inline F32x16 operator-(F32x16 a, F32x16 b) {
    return each<F32x16>([&](int i) { return a.v[i] - b.v[i]; });
}
inline F32x16 operator*(F32x16 a, F32x16 b) {
    return each<F32x16>([&](int i) { return a.v[i] * b.v[i]; });
}
inline F32x16 operator/(F32x16 a, F32x16 b) {
    return each<F32x16>([&](int i) { return a.v[i] / b.v[i]; });
}

#ifdef __FP_FAST_FMAF
inline F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
    return each<F32x16>([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
}
#else
// a * b + c with one rounding. The product is exact in double; the sum is rounded to odd there, so
// that rounding once more to float gives the correctly rounded result (Boldo and Melquiond 2008).
inline float fused(float a, float b, float c) {
    const double product = double(a) * double(b), addend = c;
    const double sum = product + addend;
    const double part = sum - product;
    const double error = (product - (sum - part)) + (addend - part);
    const int64_t bits = __builtin_bit_cast(int64_t, sum);
    // Towards the error where the last bit is even; a NaN error (infinite sum) is not inexact.
    const bool inexact = (error > 0) | (error < 0);
    const int64_t even = ~bits & 1;
    const int64_t opposite = int64_t(uint64_t(bits ^ __builtin_bit_cast(int64_t, error)) >> 63);
    const int64_t odd = bits + (inexact ? even - 2 * (even & opposite) : 0);
    return float(__builtin_bit_cast(double, odd));
}

// The sum rounded twice is right already unless the first rounding hit the middle between two
// floats, or the result is a denormal float.
inline F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
    using Doubles [[gnu::vector_size(16)]] = double;
    using Words [[gnu::vector_size(16)]] = int64_t;
    F32x16 out;
    Words doubt = {0, 0};
    for (int i = 0; i < 16; i += 2) {
        const Doubles x = {a.v[i], a.v[i + 1]}, y = {b.v[i], b.v[i + 1]}, z = {c.v[i], c.v[i + 1]};
        const Doubles sum = x * y + z;
        doubt |= (__builtin_bit_cast(Words, sum) & 0x1fffffff) == 0x10000000;
        doubt |= (sum < 0x1p-126) & (sum > -0x1p-126) & (sum != 0);
        out.v[i] = float(sum[0]);
        out.v[i + 1] = float(sum[1]);
    }
    if (__builtin_expect((doubt[0] | doubt[1]) == 0, 1)) return out;
    return each<F32x16>([&](int i) { return fused(a.v[i], b.v[i], c.v[i]); });
}
#endif

// a > b ? a : b, so b where either is NaN.
inline F32x16 max(F32x16 a, F32x16 b) {
    return each<F32x16>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}

inline Mask16 operator<(F32x16 a, F32x16 b) {
    return each<Mask16>([&](int i) { return a.v[i] < b.v[i] ? ~0u : 0u; });
}
inline Mask16 operator<=(F32x16 a, F32x16 b) {
    return each<Mask16>([&](int i) { return a.v[i] <= b.v[i] ? ~0u : 0u; });
}
inline Mask16 operator&(Mask16 a, Mask16 b) {
    return each<Mask16>([&](int i) { return a.v[i] & b.v[i]; });
}
inline uint32_t bits(Mask16 m) {
    uint32_t out = 0;
    for (int i = 0; i < 16; ++i) out |= (m.v[i] & 1u) << i;
    return out;
}
inline F32x16 select(Mask16 m, F32x16 yes, F32x16 no) {
    return each<F32x16>([&](int i) { return m.v[i] ? yes.v[i] : no.v[i]; });
}
inline U32x16 select(Mask16 m, U32x16 yes, U32x16 no) {
    return each<U32x16>([&](int i) { return m.v[i] ? yes.v[i] : no.v[i]; });
}

inline U32x16 operator+(U32x16 a, U32x16 b) {
    return each<U32x16>([&](int i) { return a.v[i] + b.v[i]; });
}
inline U32x16 operator-(U32x16 a, U32x16 b) {
    return each<U32x16>([&](int i) { return a.v[i] - b.v[i]; });
}
inline U32x16 operator^(U32x16 a, U32x16 b) {
    return each<U32x16>([&](int i) { return a.v[i] ^ b.v[i]; });
}
inline U32x16 operator&(U32x16 a, U32x16 b) {
    return each<U32x16>([&](int i) { return a.v[i] & b.v[i]; });
}
template <int n>
inline U32x16 shift_left(U32x16 a) {
    return each<U32x16>([&](int i) { return a.v[i] << n; });
}
template <int n>
inline U32x16 shift_right(U32x16 a) {
    return each<U32x16>([&](int i) { return a.v[i] >> n; });
}
template <int n>
inline U32x16 shift_right_signed(U32x16 a) {
    return each<U32x16>([&](int i) { return uint32_t(int32_t(a.v[i]) >> n); });
}
struct WideProduct {
    U32x16 high, low;
};
inline WideProduct multiply(U32x16 a, uint32_t b) {
    WideProduct out;
    for (int i = 0; i < 16; ++i) {
        const uint64_t product = uint64_t(a.v[i]) * b;
        out.high.v[i] = uint32_t(product >> 32);
        out.low.v[i] = uint32_t(product);
    }
    return out;
}
inline U32x16 load(const int32_t* p) {
    U32x16 r;
    __builtin_memcpy(&r, p, sizeof(r));
    return r;
}
inline F32x16 to_float(U32x16 a) {  // as signed
    return each<F32x16>([&](int i) { return float(int32_t(a.v[i])); });
}
inline F32x16 as_float(U32x16 a) {
    return __builtin_bit_cast(F32x16, a);
}
inline U32x16 as_u32(F32x16 a) {
    return __builtin_bit_cast(U32x16, a);
}

// The largest lane; no lane is NaN.
inline float largest_lane(F32x16 a) {
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) a.v[i] = a.v[i + half] > a.v[i] ? a.v[i + half] : a.v[i];
    return a.v[0];
}

inline void store_low_bytes(void* p, U32x16 a) {
    for (int i = 0; i < 16; ++i) static_cast<uint8_t*>(p)[i] = uint8_t(a.v[i]);
}

// The fixed tree: lanes 8 apart, then 4, 2 and 1.
inline float sum(F32x16 a) {
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) a.v[i] = a.v[i] + a.v[i + half];
    return a.v[0];
}
inline void sum4(float* out, const F32x16* a) {
    for (int i = 0; i < 4; ++i) out[i] = sum(a[i]);
}
inline void sum8(float* out, const F32x16* a) {
    for (int i = 0; i < 8; ++i) out[i] = sum(a[i]);
}
inline void sum16(float* out, const F32x16* a) {
    for (int i = 0; i < 16; ++i) out[i] = sum(a[i]);
}

// A register of lanes, for loops that must count registers.
using Part = F32x16;
constexpr int kParts = 1;
constexpr int kRegisters = 16;
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
inline Part held(Part a) {
    return a;
}
inline void split(Part* parts, F32x16 a) {
    parts[0] = a;
}
inline F32x16 join(const Part* parts) {
    return parts[0];
}

// Replaces 64 bytes, each below 16, by their entries in a table.
inline void look_up(uint8_t* bytes, const int8_t (&table)[16]) {
    for (int i = 0; i < 64; ++i) bytes[i] = uint8_t(table[bytes[i]]);
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
