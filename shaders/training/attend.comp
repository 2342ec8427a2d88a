#version 450
// Attention of some rows of a head to the rows before them in their sequences, in one pass over the
// keys: the results are scaled whenever a larger score turns up.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "training/attended_tiles.glsl"

PARAMS(AttendParams);
WRITES(0, float, result);
WRITES(1, float, lse);
READS(2, float, q);
READS(3, float, keys);
READS(4, float, values);
READS(5, uint, sequences);  // the first row of each row's sequence, and the row after its last

const float kLowest = -3e38;
shared float largest[kSide], sums[kSide], factors[kSide];

// Invocation t < kSide has row t: its new largest score, and the factor of all that was summed.
void raise_largest() {
    const uint t = gl_LocalInvocationID.x;
    if (t >= kSide) return;
    float most = largest[t];
    for (uint k = 0u; k < kSide; ++k) most = max(most, weights[t * kPitch + k]);
    factors[t] = exp_of(largest[t] - most);
    largest[t] = most;
}

void add_sums() {
    const uint t = gl_LocalInvocationID.x;
    if (t >= kSide) return;
    float sum = 0.0;
    for (uint k = 0u; k < kSide; ++k) sum += weights[t * kPitch + k];
    sums[t] = sums[t] * factors[t] + sum;
}

void main() {
    const uint first_row = gl_WorkGroupID.x * kSide, head = gl_WorkGroupID.y;
    const uint first_column = gl_WorkGroupID.z * kAttendedColumns;
    const uint of_head = head * p.head_dim, of_kv = head / p.group * p.head_dim;
    uint begins[kOwn];  // the first key that an own row sees
    [[unroll]] for (uint i = 0u; i < kOwn; ++i) {
        const uint row = first_row + own_row(i);
        begins[i] = row < p.rows ? sequences[at[5] + 2u * row] : 0xffffffffu;
    }
    float results[kResults], scores[kScores];
    [[unroll]] for (uint i = 0u; i < kResults; ++i) results[i] = 0.0;
    if (gl_LocalInvocationID.x < kSide) {
        largest[gl_LocalInvocationID.x] = kLowest;
        sums[gl_LocalInvocationID.x] = 0.0;
    }
    const uint end = min(first_row + kSide, p.rows);
    for (uint key = sequences[at[5] + 2u * first_row]; key < end; key += kSide) {
        DOT_PRODUCTS(scores, q, at[2] + of_head, p.q_stride, first_row, keys, at[3] + of_kv,
                     p.keys_stride, key)
        [[unroll]] for (uint i = 0u; i < kOwn; ++i)
            [[unroll]] for (uint j = 0u; j < kBeside; ++j) {
                const uint k = key + own_column(j);
                const bool seen = k >= begins[i] && k <= first_row + own_row(i);
                scores[i * kBeside + j] = seen ? scores[i * kBeside + j] * p.scale : kLowest;
                weights[weight_at(i, j)] = scores[i * kBeside + j];
            }
        barrier();
        raise_largest();
        barrier();
        [[unroll]] for (uint i = 0u; i < kOwn; ++i) {
            [[unroll]] for (uint j = 0u; j < kBeside; ++j) {
                const float score = scores[i * kBeside + j];
                weights[weight_at(i, j)] =
                    score > kLowest ? exp_of(score - largest[own_row(i)]) : 0.0;
            }
            [[unroll]] for (uint part = 0u; part < kParts; ++part)
                [[unroll]] for (uint j = 0u; j < kBeside; ++j)
                    results[part * kScores + i * kBeside + j] *= factors[own_row(i)];
        }
        barrier();
        add_sums();
        ADD_WEIGHTED(results, values, at[4] + of_kv, p.values_stride, key, first_column)
    }
    barrier();
#define PUT(i, column, value)                                                   \
    result[at[0] + (first_row + own_row(i)) * p.out_stride + of_head + column] = \
        value / sums[own_row(i)]
    EACH_RESULT(results, first_row, first_column, PUT)
    const uint row = first_row + gl_LocalInvocationID.x;
    if (first_column == 0u && row < end)
        lse[at[1] + row * p.lse_stride + head] =
            largest[gl_LocalInvocationID.x] + log(sums[gl_LocalInvocationID.x]);
}
