#version 450
// The sum of exp((logit - best) / temperature) over the tokens that the filters keep.
#extension GL_GOOGLE_include_directive : require
#include "lib/arithmetic.glsl"
#include "lib/fixed_point.glsl"
#include "lib/io.glsl"
#include "lib/order.glsl"

layout(local_size_x = 256) in;
PARAMS(ProbsParams);
WRITES(0, uint, totals);  // [rows][2]: low, high
#include "lib/processed.glsl"

shared uint low, high;

void main() {
    uint t = gl_LocalInvocationID.x, slice = gl_WorkGroupID.x, row = gl_WorkGroupID.y;
    if (!begin_row(row)) return;
    begin_cut(row);
    if (t == 0u) low = high = 0u;
    barrier();
    uvec2 own = uvec2(0u);
    uint end = min((slice + 1u) * kSlice, p.choice.vocab);
    for (uint id = slice * kSlice + t; id < end; id += 256u) {
        uint key = logit_key(id);
        if (kept(key, id)) own = sum_of(own, fixed_of(exp_of(weighed(key))));
    }
    ADD_FIXED(low, high, own);
    barrier();
    if (t == 0u)
        ADD_FIXED(totals[at[0] + row * 2u], totals[at[0] + row * 2u + 1u], uvec2(low, high));
}
