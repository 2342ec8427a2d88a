#version 450
// Adds the gradients of keys and values of depth 0: dV += P^T dO, dK += dS^T Q
// (attend_back_queries.comp). A workgroup has some rows of a kv head, and adds what they get from
// all later rows of their sequences, one query head after the other.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "training/attended_tiles.glsl"

PARAMS(AttendBackParams);
WRITES(0, float, dkeys);
WRITES(1, float, dvalues);
READS(2, float, dout);
READS(3, float, q);
READS(4, float, keys);
READS(5, float, values);
READS(6, float, lse);
READS(7, float, along);
READS(8, uint, sequences);

void main() {
    const uint first_row = gl_WorkGroupID.x * kSide, kv_head = gl_WorkGroupID.y;
    const uint first_column = gl_WorkGroupID.z * kAttendedColumns;
    const uint of_kv = kv_head * p.head_dim;
    const uint end = sequences[at[8] + 2u * (min(first_row + kSide, p.rows) - 1u) + 1u];
    float key_sums[kResults], value_sums[kResults], scores[kScores], slopes[kScores];
    [[unroll]] for (uint i = 0u; i < kResults; ++i) key_sums[i] = value_sums[i] = 0.0;
    for (uint head = kv_head * p.group; head < (kv_head + 1u) * p.group; ++head) {
        const uint of_head = head * p.head_dim;
        for (uint query = first_row; query < end; query += kSide) {
            DOT_PRODUCTS(scores, keys, at[4] + of_kv, p.keys_stride, first_row, q,
                         at[3] + of_head, p.q_stride, query)
            DOT_PRODUCTS(slopes, values, at[5] + of_kv, p.values_stride, first_row, dout,
                         at[2] + of_head, p.dout_stride, query)
            [[unroll]] for (uint j = 0u; j < kBeside; ++j) {
                const uint row = min(query + own_column(j), p.rows - 1u);
                const uint begin = sequences[at[8] + 2u * row];
                const float row_lse = lse[at[6] + row * p.lse_stride + head];
                const float row_along = along[at[7] + row * p.along_stride + head];
                [[unroll]] for (uint i = 0u; i < kOwn; ++i) {
                    const uint n = i * kBeside + j, k = first_row + own_row(i);
                    const bool seen = k >= begin && k <= query + own_column(j) &&
                                      query + own_column(j) < p.rows;
                    const float weight = seen ? exp_of(scores[n] * p.scale - row_lse) : 0.0;
                    weights[weight_at(i, j)] = weight;
                    slopes[n] = weight * (slopes[n] - row_along) * p.scale;
                }
            }
            ADD_WEIGHTED(value_sums, dout, at[2] + of_head, p.dout_stride, query, first_column)
            barrier();
            [[unroll]] for (uint i = 0u; i < kOwn; ++i)
                [[unroll]] for (uint j = 0u; j < kBeside; ++j)
                    weights[weight_at(i, j)] = slopes[i * kBeside + j];
            ADD_WEIGHTED(key_sums, q, at[3] + of_head, p.q_stride, query, first_column)
        }
    }
#define PUT_KEY(i, column, value) \
    dkeys[at[0] + (first_row + own_row(i)) * p.dkeys_stride + of_kv + column] += value
#define PUT_VALUE(i, column, value) \
    dvalues[at[1] + (first_row + own_row(i)) * p.dvalues_stride + of_kv + column] += value
    EACH_RESULT(key_sums, first_row, first_column, PUT_KEY)
    EACH_RESULT(value_sums, first_row, first_column, PUT_VALUE)
}
