#version 450
// Finds the best tokens of each slice of a row: by logit, or by logit plus noise among the tokens
// that the filters keep. By logit it also adds up exp(logit - best of the slice).
#extension GL_GOOGLE_include_directive : require
#include "lib/arithmetic.glsl"
#include "lib/fixed_point.glsl"
#include "lib/io.glsl"
#include "lib/order.glsl"

layout(local_size_x = 256) in;
PARAMS(TopKParams);
WRITES(0, uint, partial);  // [rows][slices]: width keys, width ids, sum (low, high)
#include "lib/best_of.glsl"
#include "lib/processed.glsl"
READS(6, int, id_map);

shared uint low, high;

uint first;  // first token of the slice
bool noisy;

uvec2 item(uint i) {
    uint id = first + i;
    if (!noisy) return uvec2(logit_key(id), id);
    uint token = p.has_map != 0u ? uint(id_map[at[6] + id]) : id;
    return uvec2(noisy_key(id, at[4] + token), id);
}

void add_exponentials(uint count) {
    uint t = gl_LocalInvocationID.x;
    uint best = best_items[0].x;
    uvec2 mass = uvec2(0u);
    for (uint i = t; i < count; i += 256u) {
        uint key = logit_key(first + i);
        if (key <= kLowestKey) continue;
        precise float below = value_of(key) - value_of(best);
        mass = sum_of(mass, fixed_of(exp_of(below)));
    }
    ADD_FIXED(low, high, mass);
}

void main() {
    uint t = gl_LocalInvocationID.x, slice = gl_WorkGroupID.x, row = gl_WorkGroupID.y;
    noisy = begin_row(row) && p.noisy != 0u;
    if (noisy) begin_cut(row);
    first = slice * kSlice;
    uint count = min(p.choice.vocab - first, kSlice);
    if (t == 0u) low = high = 0u;
    find_best(min(p.width, count), count);
    if (!noisy && is_finite_key(best_items[0].x)) add_exponentials(count);
    barrier();
    uint to = at[0] + (row * p.slices + slice) * (2u * p.width + 2u);
    if (t < p.width) {
        partial[to + t] = t < count ? best_items[t].x : 0u;
        partial[to + p.width + t] = t < count ? best_items[t].y : kNoId;
    }
    if (t == 0u) {
        partial[to + 2u * p.width] = low;
        partial[to + 2u * p.width + 1u] = high;
    }
}
