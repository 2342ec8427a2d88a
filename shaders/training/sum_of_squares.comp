#version 450
// The sum of squares of each row.
#extension GL_GOOGLE_include_directive : require
#include "training/lanes.glsl"

PARAMS(SquaresParams);
WRITES(0, float, results);
READS(1, float, x);

void main() {
    EACH_ROW(row, p.rows) {
        const uint from = at[1] + row * p.x_stride;
        float sum = 0.0;
        EACH_COLUMN(i, p.cols) sum += x[from + i] * x[from + i];
        sum = sum_of_lanes(sum);
        if (gl_LocalInvocationID.x == 0u) results[at[0] + row] = sum;
    }
}
