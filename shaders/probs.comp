#version 450
// Probabilities of a row's tokens. Where there is no distribution (see begin_row()), the best token
// has probability 1.
#extension GL_GOOGLE_include_directive : require
#include "lib/arithmetic.glsl"
#include "lib/fixed_point.glsl"
#include "lib/io.glsl"
#include "lib/order.glsl"

layout(local_size_x = 64) in;
PARAMS(ProbsParams);
WRITES(0, float, probs);
#include "lib/processed.glsl"
READS(6, uint, totals);

void main() {
    uint id = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
    if (id >= p.choice.vocab) return;
    precise float result = 0.0;
    if (begin_row(row)) {
        begin_cut(row);
        uint key = logit_key(id);
        float total = float_of(uvec2(totals[at[6] + row * 2u], totals[at[6] + row * 2u + 1u]));
        if (kept(key, id)) result = exp_of(weighed(key)) * reciprocal(total);
    } else if (id == row_top.y && row_top.x != 0u) {
        result = 1.0;
    }
    probs[at[0] + row * p.out_stride + id] = result;
}
