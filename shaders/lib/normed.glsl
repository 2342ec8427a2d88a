// RMS norm of a row: value(row, i) is the normalised element, once begin_row() is done. The
// workgroup has at least 128 invocations.
READS(1, float, x);
READS(2, float, weight);
#include "sum_of_squares.glsl"

float scale;

float element(uint i) {
    return x[at[1] + gl_WorkGroupID.x * p.x_stride + i];
}

void begin_row() {
    scale = normal_scale(p.cols, p.inverse_cols, p.epsilon);
}

float value(uint row, uint i) {
    precise float y = (x[at[1] + row * p.x_stride + i] * scale) * weight[at[2] + i];
    return y;
}
