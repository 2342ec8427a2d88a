#version 450
// One update of AdamW (Loshchilov and Hutter 2019).
#extension GL_GOOGLE_include_directive : require
#include "training/elements.glsl"

PARAMS(UpdateParams);
WRITES(0, float, weight);
WRITES(1, float, mean);
WRITES(2, float, square);
READS(3, float, gradient);

void main() {
    const uint column = gl_GlobalInvocationID.x;
    if (column >= p.cols) return;
    EACH_ROW(row, p.rows) {
        const uint w = at[0] + row * p.weight_stride + column;
        const uint m = at[1] + row * p.mean_stride + column;
        const uint v = at[2] + row * p.square_stride + column;
        const float d = gradient[at[3] + row * p.gradient_stride + column] * p.clip;
        const float new_mean = p.beta1 * mean[m] + p.rest1 * d;
        const float new_square = p.beta2 * square[v] + p.rest2 * d * d;
        mean[m] = new_mean;
        square[v] = new_square;
        const float way =
            new_mean * p.mean_scale / (sqrt(new_square * p.square_scale) + p.epsilon);
        weight[w] -= p.rate * (way + p.decay * weight[w]);
    }
}
