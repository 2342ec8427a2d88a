// Conversions of f16 by integer code, because drivers may flush its denormals and round as they
// like. kReadsHalves: the driver is made to keep denormals, so that f16 is read by the instruction.
#if !defined(HALF_GLSL)
#define HALF_GLSL
layout(constant_id = 10) const bool kReadsHalves = false;

float half_value(uint bits) {
    if (kReadsHalves) return unpackHalf2x16(bits).x;
    uint magnitude = bits & 0x7fffu;
    uint word = (magnitude << 13) + (magnitude >= 0x7c00u ? 0x70000000u : 0x38000000u);
    precise float small = float(magnitude) * 5.9604644775390625e-8;  // 2^-24
    uint value = magnitude < 0x0400u ? floatBitsToUint(small) : word;
    return uintBitsToFloat(value | (bits & 0x8000u) << 16);
}

// Rounds to nearest, ties to even.
uint half_bits(float x) {
    uint word = floatBitsToUint(x), sign = (word >> 16) & 0x8000u, magnitude = word & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | 0x7e00u;
    if (magnitude >= 0x47800000u) return sign | 0x7c00u;
    if (magnitude >= 0x38800000u) {
        uint moved = magnitude - 0x38000000u;
        return sign | (moved + 0xfffu + ((moved >> 13) & 1u)) >> 13;
    }
    uint exponent = magnitude >> 23;
    if (exponent < 102u) return sign;
    uint shift = 126u - exponent, mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    uint result = mantissa >> shift, rest = mantissa & ((1u << shift) - 1u), tie = 1u << (shift - 1u);
    if (rest > tie || (rest == tie && (result & 1u) == 1u)) ++result;
    return sign | result;
}

uint two_halves(float low, float high) {
    return half_bits(low) | half_bits(high) << 16;
}
#endif
