#version 450
// RMS norm of each head of Q and K. One workgroup per row and head.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"

layout(local_size_x = 128) in;
PARAMS(HeadNormParams);
WRITES(0, float, qkv);
READS(1, float, q_weight);
READS(2, float, k_weight);
#include "lib/sum_of_squares.glsl"

uint from;

float element(uint i) {
    return qkv[from + i];
}

void main() {
    uint head = gl_WorkGroupID.x, row = gl_WorkGroupID.y;
    from = at[0] + row * p.qkv_stride + head * p.head_dim;
    float scale = normal_scale(p.head_dim, p.inverse_dim, p.epsilon);
    for (uint i = gl_LocalInvocationID.x; i < p.head_dim; i += 128u) {
        float weight = head < p.heads ? q_weight[at[1] + i] : k_weight[at[2] + i];
        precise float y = (qkv[from + i] * scale) * weight;
        qkv[from + i] = y;
    }
}
