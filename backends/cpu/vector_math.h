// exp, log, reciprocal and inverse square root of lanes: the definitions of core/arithmetic.h and
// core/rng.cpp, bit for bit.
#pragma once

#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// Horner's rule; the highest coefficient first.
template <int count>
inline F32x16 polynomial(F32x16 x, const float (&coefficients)[count]) {
    F32x16 p = splat(coefficients[0]);
    for (int i = 1; i < count; ++i) p = p * x + splat(coefficients[i]);
    return p;
}

// The result is within 2 units in the last place; it is 0 below -87.3, the value at 88 above 88,
// and NaN for NaN.
inline F32x16 exp(F32x16 x) {
    const F32x16 top = splat(88.0f), bottom = splat(-87.3f);
    const F32x16 clamped = select(top < x, top, x);
    // Adding 1.5 * 2^23 rounds to an integer n, which is then in the low bits.
    const F32x16 magic = splat(12582912.0f);
    const F32x16 shifted = clamped * splat(1.44269504f) + magic;
    const F32x16 n = shifted - magic;
    const F32x16 r = (clamped - n * splat(0.693359375f)) - n * splat(-2.12194440e-4f);
    const F32x16 p = polynomial(r, {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                    4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f});
    const F32x16 power = (p * (r * r) + r) + splat(1.0f);
    const F32x16 scale = as_float(shift_left<23>(as_u32(shifted) + splat_u32(127)));
    return select(x < bottom, splat(0.0f), power * scale);
}

inline F32x16 reciprocal(F32x16 x) {
    F32x16 r = as_float(splat_u32(0x7ef311c7u) - as_u32(x));
    for (int i = 0; i < 3; ++i) r = r * (splat(2.0f) - x * r);
    return r;
}

inline F32x16 inverse_sqrt(F32x16 x) {
    const F32x16 half = splat(0.5f) * x;
    F32x16 r = as_float(splat_u32(0x5f3759dfu) - shift_right<1>(as_u32(x)));
    for (int i = 0; i < 3; ++i) r = r * (splat(1.5f) - (half * r) * r);
    return r;
}

inline F32x16 silu(F32x16 x) {
    const F32x16 bottom = splat(-80.0f), least = select(x < bottom, bottom, x);
    return x * reciprocal(splat(1.0f) + exp(splat(0.0f) - least));
}

// log(1 + f) + exponent * ln 2; the definition is log_parts in core/rng.cpp.
inline F32x16 log_parts(F32x16 f, F32x16 exponent) {
    const F32x16 z = f * f;
    const F32x16 p = polynomial(f, {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f,
                                    -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                                    2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f});
    F32x16 y = f * (z * p);
    y = y + exponent * splat(-2.12194440e-4f);
    y = y + splat(-0.5f) * z;
    return (f + y) + exponent * splat(0.693359375f);
}

// A positive, normal x as (1 + f) * 2^exponent with 1 + f in [sqrt(1/2), sqrt(2)).
struct Split {
    F32x16 f, exponent;
};
inline Split split(F32x16 x) {
    const U32x16 shifted = as_u32(x) - splat_u32(0x3f3504f3u);
    const U32x16 mantissa = (shifted & splat_u32(0x007fffffu)) + splat_u32(0x3f3504f3u);
    return {as_float(mantissa) - splat(1.0f), to_float(shift_right_signed<23>(shifted))};
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
