#version 450
// The dot product of each head of each row of two matrices.
#extension GL_GOOGLE_include_directive : require
#include "training/lanes.glsl"

PARAMS(HeadDotsParams);
WRITES(0, float, dots);
READS(1, float, a);
READS(2, float, b);

void main() {
    const uint head = gl_WorkGroupID.x;
    EACH_ROW(row, p.rows) {
        const uint of_a = at[1] + row * p.a_stride + head * p.head_dim;
        const uint of_b = at[2] + row * p.b_stride + head * p.head_dim;
        float sum = 0.0;
        EACH_COLUMN(d, p.head_dim) sum += a[of_a + d] * b[of_b + d];
        sum = sum_of_lanes(sum);
        if (gl_LocalInvocationID.x == 0u) dots[at[0] + row * p.dots_stride + head] = sum;
    }
}
