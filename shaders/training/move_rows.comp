#version 450
// Gathers rows of x by their numbers, or scatters them.
#extension GL_GOOGLE_include_directive : require
#include "training/elements.glsl"

layout(constant_id = 0) const uint kScatters = 0;
PARAMS(MoveRowsParams);
WRITES(0, float, result);
READS(1, float, x);
READS(2, uint, numbers);

void main() {
    const uint column = gl_GlobalInvocationID.x;
    if (column >= p.cols) return;
    EACH_ROW(row, p.rows) {
        const uint other = numbers[at[2] + row];
        const uint to = kScatters != 0u ? other : row, from = kScatters != 0u ? row : other;
        result[at[0] + to * p.out_stride + column] = x[at[1] + from * p.x_stride + column];
    }
}
