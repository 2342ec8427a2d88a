// The scale for a single row of x that a matmul takes as pairs of f16: each workgroup computes it
// for itself, as rms_norm_halves.comp and halves.comp do, which is faster than to wait for a
// dispatch that has one row to do. Elements are normalised and split where they are used, once
// begin_row() is done.
#include "norm_here.glsl"

const uint kInvocationsOfRow = gl_WorkGroupSize.x * gl_WorkGroupSize.y;
const uint kShare = (kNormed + kInvocationsOfRow - 1u) / kInvocationsOfRow;  // elements per
                                                                             // invocation
const uint kMaxAhead = 32u, kAhead = kShare < kMaxAhead ? kShare : kMaxAhead;
const uint kRounds = (kShare + kAhead - 1u) / kAhead;
shared uint peak_of_row[4];  // [0] only; a whole quad, since AMD's compiler does not align what
                             // follows
float elements_of_row[kMaxAhead], norm_weights_of_row[kMaxAhead];
float row_scale;

float value_of(float element, float norm_weight) {
#if defined(NORMED)
    return normed(element, norm_weight);
#else
    return element;
#endif
}

// Elements beyond the last are copies of it.
void read_share(uint round) {
    [[unroll]] for (uint j = 0u; j < kAhead; ++j) {
        uint i = gl_LocalInvocationIndex + (round * kAhead + j) * kInvocationsOfRow;
        elements_of_row[j] = x[at[1] + min(i, kNormed - 1u)];
#if defined(NORMED)
        norm_weights_of_row[j] = norm_weight[at[9] + min(i, kNormed - 1u)];
#endif
    }
}

// Finds the row's scale. All invocations call it.
void begin_row() {
    read_share(0u);
    if (gl_LocalInvocationIndex == 0u) peak_of_row[0] = 0u;
#if defined(NORMED)
    norm_row();
#endif
    uint largest = 0u;
    for (uint round = 0u; round < kRounds; ++round) {
        if (round > 0u) read_share(round);
        [[unroll]] for (uint j = 0u; j < kAhead; ++j) {
            float value = value_of(elements_of_row[j], norm_weights_of_row[j]);
            largest = max(largest, floatBitsToUint(value) & 0x7fffffffu);
        }
    }
    barrier();
    atomicMax(peak_of_row[0], largest);
    barrier();
    row_scale = uintBitsToFloat(scale_exponent(peak_of_row[0]) << 23);
}
