#version 450
// Finds the best token of a row among the best ones of its slices.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/order.glsl"

layout(local_size_x = 32) in;
PARAMS(BestParams);
WRITES(0, uint, tops);    // [rows][2]: key, id
READS(1, uint, partial);  // [rows][slices][2]
READS(2, int, rows);
WRITES(3, uint, ids);
#include "lib/row_fields.glsl"

shared uvec2 leaders[32];

void main() {
    uint t = gl_LocalInvocationID.x, row = gl_WorkGroupID.x;
    uvec2 best = uvec2(0u, kNoId);
    for (uint slice = t; slice < p.slices; slice += 32u) {
        uint from = at[1] + (row * p.slices + slice) * 2u;
        uvec2 other = uvec2(partial[from], partial[from + 1u]);
        if (before(other, best)) best = other;
    }
    leaders[t] = best;
    barrier();
    if (t != 0u) return;
    for (uint i = 1u; i < min(p.slices, 32u); ++i)
        if (before(leaders[i], best)) best = leaders[i];
    if (p.is_last != 0u) {
        if (rows[at[2] + row * kRowWords + kRowSlot] >= 0) ids[at[3] + row] = best.y;
        return;
    }
    tops[at[0] + row * 2u] = best.x;
    tops[at[0] + row * 2u + 1u] = best.y;
}
