#version 450
// The gradient of queries by depth 0. With P = exp(S - lse): dP = dO V^T, dS = P (dP - along),
// dQ = dS K, where `along` is the dot product of dO and O.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "training/attended_tiles.glsl"

PARAMS(AttendBackParams);
WRITES(0, float, dq);
READS(1, float, dout);
READS(2, float, q);
READS(3, float, keys);
READS(4, float, values);
READS(5, float, lse);
READS(6, float, along);
READS(7, uint, sequences);

void main() {
    const uint first_row = gl_WorkGroupID.x * kSide, head = gl_WorkGroupID.y;
    const uint first_column = gl_WorkGroupID.z * kAttendedColumns;
    const uint of_head = head * p.head_dim, of_kv = head / p.group * p.head_dim;
    uint begins[kOwn];
    float lses[kOwn], alongs[kOwn];
    [[unroll]] for (uint i = 0u; i < kOwn; ++i) {
        const uint row = min(first_row + own_row(i), p.rows - 1u);
        begins[i] = sequences[at[7] + 2u * row];
        lses[i] = lse[at[5] + row * p.lse_stride + head];
        alongs[i] = along[at[6] + row * p.along_stride + head];
    }
    float results[kResults], scores[kScores], slopes[kScores];
    [[unroll]] for (uint i = 0u; i < kResults; ++i) results[i] = 0.0;
    const uint end = min(first_row + kSide, p.rows);
    for (uint key = sequences[at[7] + 2u * first_row]; key < end; key += kSide) {
        DOT_PRODUCTS(scores, q, at[2] + of_head, p.q_stride, first_row, keys, at[3] + of_kv,
                     p.keys_stride, key)
        DOT_PRODUCTS(slopes, dout, at[1] + of_head, p.dout_stride, first_row, values,
                     at[4] + of_kv, p.values_stride, key)
        [[unroll]] for (uint i = 0u; i < kOwn; ++i)
            [[unroll]] for (uint j = 0u; j < kBeside; ++j) {
                const uint n = i * kBeside + j, k = key + own_column(j);
                const bool seen = k >= begins[i] && k <= first_row + own_row(i);
                weights[weight_at(i, j)] =
                    seen ? exp_of(scores[n] * p.scale - lses[i]) * (slopes[n] - alongs[i]) * p.scale
                         : 0.0;
            }
        ADD_WEIGHTED(results, keys, at[3] + of_kv, p.keys_stride, key, first_column)
    }
#define PUT(i, column, value) \
    dq[at[0] + (first_row + own_row(i)) * p.dq_stride + of_head + column] = value
    EACH_RESULT(results, first_row, first_column, PUT)
}
