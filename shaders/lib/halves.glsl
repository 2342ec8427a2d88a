// Rows of x in two f16 a number, which keep 21 of its bits, as cooperative matrices take them. Each
// row is brought to the middle of f16's range by a power of two, so that no rounding mode and no
// denormal matters.
//
// First the largest magnitude of each row as an integer, then panels of kHalfPanel elements: of all
// rows the high parts, then of all rows the low ones. Behind a row's end are zeros.
const uint kHalfPanel = 16u, kRowQuads = 2u;  // of a part of a panel

// Where a part of a row's panel begins, in quads from the first panel on; `rows` in all.
uint half_place(uint panel, uint part, uint row, uint rows) {
    return ((panel * 2u + part) * rows + row) * kRowQuads;
}

// The power of two that brings the row's largest element to 2^13 .. 2^14, as far as there is one.
uint scale_exponent(uint peak) {
    return clamp(267u - min(peak >> 23, 254u), 1u, 253u);
}

// What takes it back, as a float; no number where the row holds what is none.
uint unscale_word(uint peak) {
    return peak >= 0x7f800000u ? 0x7fc00000u : (254u - scale_exponent(peak)) << 23;
}

// f16 bits of x without the bits that do not fit; 0 below f16's normal range.
uint cut(float x) {
    uint word = floatBitsToUint(x), magnitude = word & 0x7fffffffu;
    return (word >> 16 & 0x8000u) |
           (magnitude < 0x38800000u ? 0u : (magnitude - 0x38000000u) >> 13);
}

// The high part, and what it leaves.
uvec2 cut_in_two(float x) {
    uint high = cut(x);
    precise float rest = x - half_value(high);
    return uvec2(high, cut(rest));
}
