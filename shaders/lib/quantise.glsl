// I8G32 groups, bit for bit as core/quant.h has them: a word for the scale, one for the sums of
// both halves, then the quantised values, four per word. `largest` is the bits of the group's amax.
#if !defined(QUANTISE_GLSL)
#define QUANTISE_GLSL
const float kMinLargest = 7.888609052210118e-31;  // 2^-100: smaller groups are zero

bool is_used(uint largest) {
    return largest < 0x7f800000u && uintBitsToFloat(largest) >= kMinLargest;
}

// The bits of the scale.
uint step_word(uint largest) {
    precise float step = uintBitsToFloat(largest) * 0.007874015718698502;  // 1 / 127
    return floatBitsToUint(is_used(largest) ? step : largest < 0x7f800000u ? 0.0 : kNan);
}

// The inverse of the scale.
float steps_of_one(uint largest) {
    precise float inverse = 127.0 * reciprocal(uintBitsToFloat(largest));
    return inverse;
}

// The quantised value of an element. Adding 1.5 * 2^23 leaves the nearest integer in the low bits.
int quant_of(float element, float inverse) {
    precise float scaled = element * inverse;
    precise float rounded = clamp(scaled, -127.0, 127.0) + 12582912.0;
    return int(floatBitsToUint(rounded) << 24) >> 24;
}

// The sum of the four quantised values in a word.
int sum_of(uint steps) {
    int sum = 0;
    for (int i = 0; i < 32; i += 8) sum += bitfieldExtract(int(steps), i, 8);
    return sum;
}

uint sums_word(int first, int second) {
    return (uint(first) & 0xffffu) | uint(second) << 16;
}
#endif
