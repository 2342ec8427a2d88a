// The definitions of core/arithmetic.h, bit for bit.
#if !defined(ARITHMETIC_GLSL)
#define ARITHMETIC_GLSL

#define kInfinity uintBitsToFloat(0x7f800000u)
#define kNan uintBitsToFloat(0x7fc00000u)

float reciprocal(float x) {
    precise float r = uintBitsToFloat(0x7ef311c7u - floatBitsToUint(x));
    for (int i = 0; i < 3; ++i) r = r * (2.0 - x * r);
    return r;
}

float inverse_sqrt(float x) {
    precise float half_x = 0.5 * x;
    precise float r = uintBitsToFloat(0x5f3759dfu - (floatBitsToUint(x) >> 1));
    for (int i = 0; i < 3; ++i) r = r * (1.5 - (half_x * r) * r);
    return r;
}

float exp_of(float x) {
    const float magic = 12582912.0;
    float clamped = 88.0 < x ? 88.0 : x;
    precise float shifted = clamped * 1.44269504 + magic;
    precise float n = shifted - magic;
    precise float r = (clamped - n * 0.693359375) - n * -2.12194440e-4;
    precise float q = 1.9875691500e-4;
    q = q * r + 1.3981999507e-3;
    q = q * r + 8.3334519073e-3;
    q = q * r + 4.1665795894e-2;
    q = q * r + 1.6666665459e-1;
    q = q * r + 5.0000001201e-1;
    precise float power = (q * (r * r) + r) + 1.0;
    precise float scaled = power * uintBitsToFloat((floatBitsToUint(shifted) + 127u) << 23);
    return x < -87.3 ? 0.0 : scaled;
}

float silu(float x) {
    float least = x < -80.0 ? -80.0 : x;
    precise float negative = 0.0 - least;
    precise float divisor = 1.0 + exp_of(negative);
    precise float y = x * reciprocal(divisor);
    return y;
}
#endif
