#version 450
// Adds the gradients of a row's own key and value of a later depth, and their part of its queries'.
#extension GL_GOOGLE_include_directive : require
#include "training/lanes.glsl"
#include "lib/arithmetic.glsl"

PARAMS(AttendBackParams);
WRITES(0, float, dq);
WRITES(1, float, dkeys);
WRITES(2, float, dvalues);
READS(3, float, dout);
READS(4, float, q);
READS(5, float, keys);
READS(6, float, values);
READS(7, float, lse);
READS(8, float, along);

void main() {
    const uint kv_head = gl_WorkGroupID.x, of_kv = kv_head * p.head_dim;
    EACH_ROW(row, p.rows) {
        const uint to_key = at[1] + row * p.dkeys_stride + of_kv;
        const uint to_value = at[2] + row * p.dvalues_stride + of_kv;
        const uint of_key = at[5] + row * p.keys_stride + of_kv;
        const uint of_value = at[6] + row * p.values_stride + of_kv;
        for (uint head = kv_head * p.group; head < (kv_head + 1u) * p.group; ++head) {
            const uint of_head = head * p.head_dim;
            const uint to_q = at[0] + row * p.dq_stride + of_head;
            const uint of_dout = at[3] + row * p.dout_stride + of_head;
            const uint of_q = at[4] + row * p.q_stride + of_head;
            float score = 0.0, slope = 0.0;
            EACH_COLUMN(d, p.head_dim) {
                score += q[of_q + d] * keys[of_key + d];
                slope += dout[of_dout + d] * values[of_value + d];
            }
            score = sum_of_lanes(score) * p.scale;
            slope = sum_of_lanes(slope) - along[at[8] + row * p.along_stride + head];
            const float weight = exp_of(score - lse[at[7] + row * p.lse_stride + head]);
            slope *= weight * p.scale;
            EACH_COLUMN(d, p.head_dim) {
                dq[to_q + d] += slope * keys[of_key + d];
                dkeys[to_key + d] += slope * q[of_q + d];
                dvalues[to_value + d] += weight * dout[of_dout + d];
            }
        }
    }
}
