// a / b rounded to nearest, ties to even, by integer code, because drivers may divide as they like.

// The significand in [2^23, 2^24) and the exponent of a number that is neither 0 nor infinite.
uint significand(uint magnitude, out int exponent) {
    exponent = int(magnitude >> 23);
    if (exponent > 0) return (magnitude & 0x007fffffu) | 0x00800000u;
    int shift = 23 - findMSB(magnitude);
    exponent = 1 - shift;
    return magnitude << shift;
}

// The float that `bits` is rounded to. It has 26 bits, in units of 2^(exponent - 25); the last one
// is also set if any bit beyond it is.
uint rounded(uint bits, int exponent) {
    int biased = exponent + 127;
    if (biased > 254) return 0x7f800000u;
    int shift = 2;
    if (biased < 1) {
        shift = min(3 - biased, 31);
        biased = 1;
    }
    uint whole = bits >> shift, rest = bits & ((1u << shift) - 1u), tie = 1u << (shift - 1);
    if (rest > tie || (rest == tie && (whole & 1u) == 1u)) ++whole;
    return (uint(biased - 1) << 23) + whole;
}

float quotient(float a, float b) {
    uint x = floatBitsToUint(a), y = floatBitsToUint(b), sign = (x ^ y) & 0x80000000u;
    x &= 0x7fffffffu;
    y &= 0x7fffffffu;
    const uint infinite = 0x7f800000u;
    bool nan = x > infinite || y > infinite || (x == infinite && y == infinite) || (x | y) == 0u;
    if (nan) return uintBitsToFloat(0x7fc00000u);
    if (x == infinite || y == 0u) return uintBitsToFloat(sign | infinite);
    if (y == infinite || x == 0u) return uintBitsToFloat(sign);
    int x_exponent, y_exponent;
    uint rest = significand(x, x_exponent), divisor = significand(y, y_exponent), bits = 0u;
    int exponent = x_exponent - y_exponent;
    if (rest < divisor) {
        rest <<= 1;
        --exponent;
    }
    for (int i = 0; i < 26; ++i) {
        bits <<= 1;
        if (rest >= divisor) {
            rest -= divisor;
            bits |= 1u;
        }
        rest <<= 1;
    }
    return uintBitsToFloat(sign | rounded(bits | (rest != 0u ? 1u : 0u), exponent));
}
