// Rows of x as pairs of f16, a high and a low part, which keep 21 bits of each element; cooperative
// matrices take them so. Each row is scaled to the middle of f16's range by a power of two, so that
// no rounding mode and no denormal matters.
//
// The layout: first the amax of each row, as an integer; then panels of kHalfPanel elements: the
// high parts of all rows, then the low parts of all rows. Elements beyond a row's end are zeros.
const uint kHalfPanel = 16u, kRowQuads = 2u;  // kRowQuads: per row and part

// Where the high (`part` 0) or low (1) part of a row's panel begins, in quads from the first panel
// on; `rows` is the number of all rows.
uint half_place(uint panel, uint part, uint row, uint rows) {
    return ((panel * 2u + part) * rows + row) * kRowQuads;
}

// The biased exponent of the power of two that scales the row's amax to 2^13 .. 2^14, as far as
// there is one.
uint scale_exponent(uint peak) {
    return clamp(267u - min(peak >> 23, 254u), 1u, 253u);
}

// The bits of the float that undoes the scaling; NaN where the row holds NaN or infinity.
uint unscale_word(uint peak) {
    return peak >= 0x7f800000u ? 0x7fc00000u : (254u - scale_exponent(peak)) << 23;
}

// The f16 bits of x, truncated; 0 below f16's normal range.
uint cut(float x) {
    uint word = floatBitsToUint(x), magnitude = word & 0x7fffffffu;
    return (word >> 16 & 0x8000u) |
           (magnitude < 0x38800000u ? 0u : (magnitude - 0x38000000u) >> 13);
}

// The high part of x, and the low part: the rest, truncated.
uvec2 cut_in_two(float x) {
    uint high = cut(x);
    precise float rest = x - half_value(high);
    return uvec2(high, cut(rest));
}
