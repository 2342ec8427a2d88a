#version 450
// Finds the best token of each slice of a row: by logit, or by logit plus noise among the tokens
// that the filters keep.
#extension GL_GOOGLE_include_directive : require
#include "lib/arithmetic.glsl"
#include "lib/io.glsl"
#include "lib/order.glsl"

layout(local_size_x = 256) in;
PARAMS(BestParams);
WRITES(0, uint, partial);  // [rows][slices][2]: key, id
#include "lib/processed.glsl"
READS(6, int, rows);
#include "lib/row_fields.glsl"

shared uvec2 leaders[256];

void main() {
    uint t = gl_LocalInvocationID.x, slice = gl_WorkGroupID.x, row = gl_WorkGroupID.y;
    uint place = at[6] + row * kRowWords, noise_at = 0u;
    bool weighs = begin_row(row) && p.noisy != 0u;
    if (p.noisy != 0u) {
        if (rows[place + kRowSlot] < 0) return;
        if (weighs) {
            begin_cut(row);
            uint depth = uint(rows[place + kRowPosition] - rows[place + kRowPrefix]);
            noise_at = at[4] + (rules[row_rule + kRuleNoise] + depth) * p.noise_stride;
        }
    }
    uvec2 best = uvec2(0u, kNoId);
    uint end = min((slice + 1u) * kSlice, p.choice.vocab);
    for (uint id = slice * kSlice + t; id < end; id += 256u) {
        uint key = weighs ? noisy_key(id, noise_at + id) : logit_key(id);
        if (weighs && key == kLowestKey) key = 0u;  // filtered: never chosen
        if (key > best.x) best = uvec2(key, id);
    }
    leaders[t] = best;
    barrier();
    if (t < 16u)
        for (uint i = t + 16u; i < 256u; i += 16u)
            if (before(leaders[i], best)) best = leaders[i];
    barrier();
    if (t < 16u) leaders[t] = best;
    barrier();
    if (t != 0u) return;
    for (uint i = 1u; i < 16u; ++i)
        if (before(leaders[i], best)) best = leaders[i];
    uint to = at[0] + (row * p.slices + slice) * 2u;
    partial[to] = best.x;
    partial[to + 1u] = best.y;
}
