#version 450
// One row over its root mean square, times a weight. A workgroup a row.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"

layout(local_size_x = 128) in;
PARAMS(NormParams);
READS(1, float, x);
READS(2, float, weight);
#include "lib/output.glsl"

shared float lanes[128];
float scale;

float value(uint row, uint i) {
    precise float y = (x[at[1] + row * p.x_stride + i] * scale) * weight[at[2] + i];
    return y;
}

// The sum of squares in 128 lanes, halved in a fixed order (core/arithmetic.h).
float sum_of_squares(uint row) {
    uint t = gl_LocalInvocationID.x;
    precise float sum = 0.0;
    for (uint i = t; i < p.cols; i += 128u) {
        float v = x[at[1] + row * p.x_stride + i];
        sum = sum + v * v;
    }
    lanes[t] = sum;
    barrier();
    if (t < 16u) {
        precise float a = (lanes[t] + lanes[t + 64u]) + (lanes[t + 32u] + lanes[t + 96u]);
        precise float b =
            (lanes[t + 16u] + lanes[t + 80u]) + (lanes[t + 48u] + lanes[t + 112u]);
        sum = a + b;
    }
    barrier();
    if (t < 16u) lanes[t] = sum;
    barrier();
    precise float halves[8];
    for (uint i = 0u; i < 8u; ++i) halves[i] = lanes[i] + lanes[i + 8u];
    for (uint i = 0u; i < 4u; ++i) halves[i] = halves[i] + halves[i + 4u];
    sum = (halves[0] + halves[2]) + (halves[1] + halves[3]);
    return sum;
}

void main() {
    uint row = gl_WorkGroupID.x;
    precise float mean = sum_of_squares(row) * p.inverse_cols;
    precise float shifted = mean + p.epsilon;
    scale = inverse_sqrt(shifted);
    for (uint unit = gl_LocalInvocationID.x; unit < p.units; unit += 128u)
        write_unit(row, unit, p.out_stride);
}
