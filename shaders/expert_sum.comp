#version 450
// Sums a row's expert outputs times their weights, choice by choice.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"

layout(local_size_x = 64) in;
PARAMS(ExpertSumParams);
WRITES(0, float, sums);
READS(1, float, x);
READS(2, float, weights);

void main() {
    uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
    if (i >= p.cols) return;
    uint from = at[1] + row * p.chosen * p.x_stride + i, weight = at[2] + row * p.weights_stride;
    precise float sum = weights[weight] * x[from];
    for (uint choice = 1u; choice < p.chosen; ++choice) {
        precise float product = weights[weight + choice] * x[from + choice * p.x_stride];
        sum = sum + product;
    }
    uint to = at[0] + row * p.out_stride + i;
    precise float total = p.accumulate == 1u ? sums[to] + sum : sum;
    sums[to] = total;
}
