#version 450
// Adds to the attention of each row and head the one key of a later depth: the row's own.
#extension GL_GOOGLE_include_directive : require
#include "training/lanes.glsl"
#include "lib/arithmetic.glsl"

PARAMS(AttendParams);
WRITES(0, float, result);
WRITES(1, float, lse);
READS(2, float, q);
READS(3, float, keys);
READS(4, float, values);

shared float lse_before;

void main() {
    const uint head = gl_WorkGroupID.x;
    const uint of_head = head * p.head_dim, of_kv = head / p.group * p.head_dim;
    const bool is_first = gl_LocalInvocationID.x == 0u;
    EACH_ROW(row, p.rows) {
        const uint to = at[0] + row * p.out_stride + of_head;
        const uint of_lse = at[1] + row * p.lse_stride + head;
        const uint of_q = at[2] + row * p.q_stride + of_head;
        const uint of_key = at[3] + row * p.keys_stride + of_kv;
        const uint of_value = at[4] + row * p.values_stride + of_kv;
        float product = 0.0;
        EACH_COLUMN(d, p.head_dim) product += q[of_q + d] * keys[of_key + d];
        if (is_first) lse_before = lse[of_lse];
        const float score = sum_of_lanes(product) * p.scale, before = lse_before;
        const float most = max(before, score);
        const float old = exp_of(before - most), own = exp_of(score - most), sum = old + own;
        EACH_COLUMN(d, p.head_dim)
            result[to + d] = (result[to + d] * old + values[of_value + d] * own) / sum;
        if (is_first) lse[of_lse] = most + log(sum);
    }
}
