// A workgroup writes a row as pairs of f16 (lib/halves.glsl). The including shader defines
// value(row, i).
#include "half.glsl"
#include "halves.glsl"

WRITES(0, uint, half_words);
shared uint row_peak;

float value(uint row, uint i);

// Writes four neighbouring elements, which are two words of each part.
void put_four(uint row, uint k, uint cols, uint rows, float scale) {
    uint high[4], low[4];
    float held[4];  // all are loaded before the first is split
    [[unroll]] for (uint j = 0u; j < 4u; ++j) held[j] = value(row, min(k + j, cols - 1u));
    [[unroll]] for (uint j = 0u; j < 4u; ++j) {
        precise float scaled = held[j] * scale;
        uvec2 both = cut_in_two(k + j < cols ? scaled : 0.0);
        high[j] = both.x;
        low[j] = both.y;
    }
    [[unroll]] for (uint part = 0u; part < 2u; ++part) {
        uint to = at[0] + rows + half_place(k / kHalfPanel, part, row, rows) * 4u + k % kHalfPanel / 2u;
        half_words[to] = part == 0u ? high[0] | high[1] << 16 : low[0] | low[1] << 16;
        half_words[to + 1u] = part == 0u ? high[2] | high[3] << 16 : low[2] | low[3] << 16;
    }
}

// Writes row `row`, with `cols` elements; `rows` is the padded number of rows, a multiple of four.
void put_halves(uint row, uint cols, uint rows) {
    const uint kAhead = 8u;
    uint invocations = gl_WorkGroupSize.x, t = gl_LocalInvocationID.x, largest = 0u;
    if (t == 0u) row_peak = 0u;
    barrier();
    for (uint i = t; i < cols; i += kAhead * invocations) {
        float values[kAhead];
        [[unroll]] for (uint j = 0u; j < kAhead; ++j)
            values[j] = value(row, min(i + j * invocations, cols - 1u));
        [[unroll]] for (uint j = 0u; j < kAhead; ++j)
            largest = max(largest, floatBitsToUint(values[j]) & 0x7fffffffu);
    }
    atomicMax(row_peak, largest);
    barrier();
    largest = row_peak;
    if (t == 0u) half_words[at[0] + row] = largest;
    float scale = uintBitsToFloat(scale_exponent(largest) << 23);
    uint padded = (cols + kHalfPanel - 1u) / kHalfPanel * kHalfPanel;
    for (uint k = 4u * t; k < padded; k += 4u * invocations) put_four(row, k, cols, rows, scale);
}
