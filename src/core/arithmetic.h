// Arithmetic that every device can repeat bit for bit: multiplies, adds and integer operations
// alone, since division, square root and exp need not be rounded alike (architecture.md section 2).
// These are the definitions; backends write them out for their vectors. Sums over a row run in 16
// virtual lanes (those of rms_norm in 128), element i in lane i % 16, which are then halved: lane j
// += lane j + 8, then + 4, + 2, + 1.
#pragma once

namespace aerie {

// Another one where the same weights and ids give other bits than they did: what was computed and
// saved before is of no use then.
constexpr int kArithmeticVersion = 1;

// 1 / x of a positive, normal x below 2^125, within 2 units in the last place. Newton's method.
float reciprocal(float x);

// 1 / sqrt(x) of a positive, normal x, within 3 units in the last place. Newton's method.
float inverse_sqrt(float x);

// Within 2 units in the last place; 0 below -87.3, the value at 88 above 88, NaN of NaN.
// Coefficients of Cephes.
float exp_of(float x);

// x / (1 + exp(-x)); below -80 the divisor is the one at -80.
float silu(float x);

}  // namespace aerie
