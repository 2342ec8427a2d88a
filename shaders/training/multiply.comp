#version 450
// A product of matrices with strides, so that either may be transposed. A workgroup has a tile of
// the result, whose factors come through shared memory in steps of kStep; an invocation adds each
// of its elements alone, in ascending order.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "training/io.glsl"

const uint kStep = 16u, kPitch = kTileSide + 1u;  // the padding keeps columns in different banks
const uint kInvocations = 64u, kOwn = 8u;         // an invocation has kOwn x kOwn elements
layout(local_size_x = kInvocations) in;
PARAMS(MultiplyParams);
WRITES(0, float, result);
READS(1, float, a);
READS(2, float, b);

shared float a_tile[kStep * kPitch], b_tile[kStep * kPitch];  // [kStep, kTileSide]

// Loads a step of one factor, of which element (i, k) is from[begin + i * i_stride + k * k_stride].
// Invocations side by side load what lies side by side.
#define LOAD(tile, from, begin, i_stride, k_stride, first, end, first_k)                 \
    for (uint e = gl_LocalInvocationID.x; e < kStep * kTileSide; e += kInvocations) {    \
        const uint i = i_stride == 1u ? e % kTileSide : e / kStep;                       \
        const uint k = i_stride == 1u ? e / kTileSide : e % kStep;                       \
        float value = 0.0;                                                               \
        if (first + i < end && first_k + k < p.inner)                                    \
            value = from[begin + (first + i) * i_stride + (first_k + k) * k_stride];     \
        tile[k * kPitch + i] = value;                                                    \
    }

void main() {
    const uint first_row = gl_WorkGroupID.y * kTileSide, first_col = gl_WorkGroupID.x * kTileSide;
    const uint row = gl_LocalInvocationID.x / 8u, col = gl_LocalInvocationID.x % 8u;
    float sums[kOwn * kOwn];
    [[unroll]] for (uint i = 0u; i < kOwn * kOwn; ++i) sums[i] = 0.0;
    for (uint first_k = 0u; first_k < p.inner; first_k += kStep) {
        LOAD(a_tile, a, at[1], p.a_row, p.a_inner, first_row, p.rows, first_k)
        LOAD(b_tile, b, at[2], p.b_col, p.b_inner, first_col, p.cols, first_k)
        barrier();
        for (uint k = 0u; k < kStep; ++k) {
            float x[kOwn], y[kOwn];
            [[unroll]] for (uint i = 0u; i < kOwn; ++i) {
                x[i] = a_tile[k * kPitch + row + 8u * i];
                y[i] = b_tile[k * kPitch + col + 8u * i];
            }
            [[unroll]] for (uint i = 0u; i < kOwn; ++i)
                [[unroll]] for (uint j = 0u; j < kOwn; ++j) sums[i * kOwn + j] += x[i] * y[j];
        }
        barrier();
    }
    [[unroll]] for (uint i = 0u; i < kOwn; ++i)
        [[unroll]] for (uint j = 0u; j < kOwn; ++j) {
            const uint r = first_row + row + 8u * i, c = first_col + col + 8u * j;
            if (r >= p.rows || c >= p.cols) continue;
            const uint to = at[0] + r * p.out_stride + c;
            result[to] = p.accumulates != 0u ? result[to] + sums[i * kOwn + j]
                                             : sums[i * kOwn + j];
        }
}
