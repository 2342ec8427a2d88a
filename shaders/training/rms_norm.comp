#version 450
// RMS norm of rows, and the inverse of each row's root mean square.
#extension GL_GOOGLE_include_directive : require
#include "training/lanes.glsl"
#include "lib/arithmetic.glsl"

PARAMS(RmsNormParams);
WRITES(0, float, result);
WRITES(1, float, inverse);
READS(2, float, x);
READS(3, float, weight);

void main() {
    EACH_ROW(row, p.rows) {
        const uint from = at[2] + row * p.x_stride, to = at[0] + row * p.out_stride;
        float squares = 0.0;
        EACH_COLUMN(i, p.cols) squares += x[from + i] * x[from + i];
        const float scale = inverse_sqrt(sum_of_lanes(squares) * p.inverse_cols + p.epsilon);
        if (gl_LocalInvocationID.x == 0u) inverse[at[1] + row * p.inverse_stride] = scale;
        EACH_COLUMN(i, p.cols) result[to + i] = x[from + i] * scale * weight[at[3] + i];
    }
}
