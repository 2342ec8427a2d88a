#version 450
// A matrix of one value.
#extension GL_GOOGLE_include_directive : require
#include "training/elements.glsl"

PARAMS(FillParams);
WRITES(0, float, result);

void main() {
    const uint column = gl_GlobalInvocationID.x;
    if (column >= p.cols) return;
    EACH_ROW(row, p.rows) result[at[0] + row * p.out_stride + column] = p.value;
}
