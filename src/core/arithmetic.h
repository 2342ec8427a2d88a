// Arithmetic that every device can repeat bit for bit. It uses only multiplies, adds and integer
// operations, since division, square root and exp may be rounded differently (docs/architecture.md,
// the invariance contract). These are the definitions; backends repeat them with vectors. Sums over
// a row run in 16 virtual lanes (128 in rms_norm), element i in lane i % 16. The lanes are then
// halved: lane j += lane j + 8, then + 4, + 2, + 1.
#pragma once

namespace aerie {

// Must change when the same weights and ids give other bits than before, so that saved results are
// not used.
constexpr int kArithmeticVersion = 1;

// 1 / x for a positive, normal x below 2^125, within 2 units in the last place, by Newton's method.
float reciprocal(float x);

// 1 / sqrt(x) for a positive, normal x, within 3 units in the last place, by Newton's method.
float inverse_sqrt(float x);

// e^x within 2 units in the last place; 0 below -87.3, the value at 88 above 88, NaN for NaN. The
// coefficients are those of Cephes.
float exp_of(float x);

// x / (1 + exp(-x)); below -80 the divisor is the one for -80.
float silu(float x);

}  // namespace aerie
