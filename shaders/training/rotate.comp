#version 450
// Rotates pairs of elements of heads. An angle is a fraction of a turn in fixed point: it is exact
// for every position, where an f32 would lose digits and the sine of a GPU may lose more.
#extension GL_GOOGLE_include_directive : require
#include "training/elements.glsl"

PARAMS(RotateParams);
WRITES(0, float, x);
READS(1, int, positions);
READS(2, uint, rates);  // turns per position of each pair of a head: high words, then low words

// Cosine and sine of `phase` / 2^32 turns: a polynomial of the rest to the nearest quarter.
vec2 unit_vector(uint phase) {
    const uint quarter = (phase + 0x20000000u) >> 30;
    const float a = float(int(phase - (quarter << 30))) * 1.46291807927e-9;  // 2 pi / 2^32
    const float b = a * a;
    const float c = 1.0 + b * (-1.0 / 2.0 + b * (1.0 / 24.0 + b * (-1.0 / 720.0 + b / 40320.0)));
    const float s =
        a * (1.0 + b * (-1.0 / 6.0 + b * (1.0 / 120.0 + b * (-1.0 / 5040.0 + b / 362880.0))));
    const vec2 turned = (quarter & 1u) != 0u ? vec2(-s, c) : vec2(c, s);
    return (quarter & 2u) != 0u ? -turned : turned;
}

void main() {
    if (gl_GlobalInvocationID.x >= p.pairs) return;
    const uint pair = gl_GlobalInvocationID.x % p.half_dim;
    const uint head = gl_GlobalInvocationID.x / p.half_dim;
    EACH_ROW(row, p.rows) {
        const int position = positions[at[1] + row];
        const uint distance = uint(abs(position));
        uint carried, lowest;
        umulExtended(distance, rates[at[2] + p.half_dim + pair], carried, lowest);
        const uint phase = distance * rates[at[2] + pair] + carried;
        const vec2 v = unit_vector((position < 0) != (p.back != 0u) ? ~phase + 1u : phase);
        const uint low_at = at[0] + row * p.x_stride + 2u * head * p.half_dim + pair;
        const float low = x[low_at], high = x[low_at + p.half_dim];
        x[low_at] = low * v.x - high * v.y;
        x[low_at + p.half_dim] = high * v.x + low * v.y;
    }
}
