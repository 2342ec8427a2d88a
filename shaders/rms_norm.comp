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
#include "lib/sum_of_squares.glsl"

float scale;

float value(uint row, uint i) {
    precise float y = (x[at[1] + row * p.x_stride + i] * scale) * weight[at[2] + i];
    return y;
}

float element(uint i) {
    return x[at[1] + gl_WorkGroupID.x * p.x_stride + i];
}

void main() {
    uint row = gl_WorkGroupID.x;
    scale = normal_scale(p.cols, p.inverse_cols, p.epsilon);
    for (uint unit = gl_LocalInvocationID.x; unit < p.units; unit += 128u)
        write_unit(row, unit, p.out_stride);
}
