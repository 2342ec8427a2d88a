#version 450
// RMS norm of a row, written as pairs of f16 for matmul_halves.comp. One workgroup per row.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"

layout(local_size_x = 256) in;
PARAMS(NormParams);
#include "lib/put_halves.glsl"
#include "lib/normed.glsl"

void main() {
    begin_row();
    put_halves(gl_WorkGroupID.x, p.cols, p.units);
}
