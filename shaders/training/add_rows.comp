#version 450
// Adds a matrix, or one row to all rows.
#extension GL_GOOGLE_include_directive : require
#include "training/elements.glsl"

PARAMS(AddRowsParams);
WRITES(0, float, result);
READS(1, float, x);

void main() {
    const uint column = gl_GlobalInvocationID.x;
    if (column >= p.cols) return;
    EACH_ROW(row, p.rows)
        result[at[0] + row * p.out_stride + column] += x[at[1] + row * p.x_stride + column];
}
