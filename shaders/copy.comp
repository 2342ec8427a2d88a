#version 450
// Copies rows as they are, or quantises them.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"

layout(local_size_x = 64) in;
PARAMS(UnitParams);
READS(1, float, a);

#include "lib/output.glsl"

float value(uint row, uint i) {
    return a[at[1] + row * p.a_stride + i];
}

void main() {
    if (gl_GlobalInvocationID.x < p.units)
        write_unit(gl_WorkGroupID.y, gl_GlobalInvocationID.x, p.out_stride);
}
