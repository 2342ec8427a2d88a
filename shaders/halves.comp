#version 450
// Writes rows as pairs of f16, as matmul_halves.comp takes them. One workgroup per row.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/io.glsl"

layout(local_size_x = 256) in;
PARAMS(HalvesParams);
READS(1, float, a);
#include "lib/put_halves.glsl"

float value(uint row, uint i) {
    return a[at[1] + row * p.a_stride + i];
}

void main() {
    put_halves(gl_WorkGroupID.x, p.cols, p.rows);
}
