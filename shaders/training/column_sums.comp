#version 450
// Adds the sum of all rows of x, or of x * other * inverse, which is the gradient of a norm's
// weight.
#extension GL_GOOGLE_include_directive : require
#include "training/io.glsl"

const uint kLanes = 8u;
layout(local_size_x = kSummedColumns, local_size_y = kLanes) in;
layout(constant_id = 0) const uint kOfNorm = 0;
PARAMS(ColumnSumsParams);
WRITES(0, float, sums);
READS(1, float, x);
READS(2, float, other);
READS(3, float, inverse);

shared float parts[kLanes][kSummedColumns];

float term(uint row, uint column) {
    const float value = x[at[1] + row * p.x_stride + column];
    if (kOfNorm == 0u) return value;
    return value * other[at[2] + row * p.other_stride + column] *
           inverse[at[3] + row * p.inverse_stride];
}

void main() {
    const uint column = gl_GlobalInvocationID.x, lane = gl_LocalInvocationID.y;
    float sum = 0.0;
    if (column < p.cols)
        for (uint row = lane; row < p.rows; row += kLanes) sum += term(row, column);
    parts[lane][gl_LocalInvocationID.x] = sum;
    barrier();
    if (lane > 0u || column >= p.cols) return;
    for (uint i = 1u; i < kLanes; ++i) sum += parts[i][gl_LocalInvocationID.x];
    sums[at[0] + column] += sum;
}
