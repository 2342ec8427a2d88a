#version 450
// silu(gate) * up; a row of the input is all gates, then all ups.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"

layout(local_size_x = 64) in;
PARAMS(UnitParams);
READS(1, float, a);

#include "lib/output.glsl"

float value(uint row, uint i) {
    uint from = at[1] + row * p.a_stride, cols = kQuantise ? p.units * 32u : p.units;
    precise float product = silu(a[from + i]) * a[from + cols + i];
    return product;
}

void main() {
    if (gl_GlobalInvocationID.x < p.units)
        write_unit(gl_WorkGroupID.y, gl_GlobalInvocationID.x, p.out_stride);
}
