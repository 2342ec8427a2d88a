#version 450
// Adds two tensors, row by row.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"

layout(local_size_x = 64) in;
PARAMS(UnitParams);
READS(1, float, a);
READS(2, float, b);

#include "lib/output.glsl"

float value(uint row, uint i) {
    precise float sum = a[at[1] + row * p.a_stride + i] + b[at[2] + row * p.b_stride + i];
    return sum;
}

void main() {
    if (gl_GlobalInvocationID.x < p.units)
        write_unit(gl_WorkGroupID.y, gl_GlobalInvocationID.x, p.out_stride);
}
