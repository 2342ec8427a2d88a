#version 450
// RMS norm of a row. One workgroup per row.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"

layout(local_size_x = 128) in;
PARAMS(NormParams);
#include "lib/output.glsl"
#include "lib/normed.glsl"

void main() {
    begin_row();
    for (uint unit = gl_LocalInvocationID.x; unit < p.units; unit += 128u)
        write_unit(gl_WorkGroupID.x, unit, p.out_stride);
}
