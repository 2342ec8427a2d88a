#version 450
// Counts the tokens of a row by the next digit of their key, among those that share the known
// digits of the cut, and adds up their masses exp((logit - best) / temperature). The sums are
// exact, so that slices and invocations may add in any order.
#extension GL_GOOGLE_include_directive : require
#include "lib/arithmetic.glsl"
#include "lib/fixed_point.glsl"
#include "lib/io.glsl"
#include "lib/order.glsl"

layout(local_size_x = 256) in;
PARAMS(CutParams);
WRITES(0, uint, histogram);  // [rows][3][kDigits]: counts, low and high words of masses
#include "lib/processed.glsl"

shared uint counts[kDigits];
shared uint lows[kDigits];
shared uint highs[kDigits];

bool in_reach(uint key, uint id, uvec2 cut) {
    if (p.level == 0u) return key != 0u;
    if (p.level == 1u) return key >> 21 == cut.x >> 21;
    if (p.level == 2u) return key >> 10 == cut.x >> 10;
    return key == cut.x && (p.level == 3u || id_key(id) >> 11 == cut.y >> 11);
}

uint digit_of(uint key, uint id) {
    if (p.level < 3u)
        return p.level == 0u ? key >> 21 : p.level == 1u ? key >> 10 & 2047u : key & 1023u;
    return p.level == 3u ? id_key(id) >> 11 : id_key(id) & 2047u;
}

void main() {
    uint t = gl_LocalInvocationID.x, slice = gl_WorkGroupID.x, row = gl_WorkGroupID.y;
    uint cut_at = at[3] + row * kCutWords;
    if (!begin_row(row) || (p.by_mass != 0u ? !row_nucleus : !row_limited)) return;
    if (p.level != 0u && cuts[cut_at + 2u] != 0u) return;
    uvec2 cut = uvec2(cuts[cut_at], cuts[cut_at + 1u]);
    for (uint i = t; i < kDigits; i += 256u) counts[i] = lows[i] = highs[i] = 0u;
    barrier();
    uint end = min((slice + 1u) * kSlice, p.choice.vocab);
    for (uint id = slice * kSlice + t; id < end; id += 256u) {
        uint key = logit_key(id);
        if (!in_reach(key, id, cut)) continue;
        uint digit = digit_of(key, id);
        atomicAdd(counts[digit], 1u);
        if (row_nucleus) ADD_FIXED(lows[digit], highs[digit], fixed_of(exp_of(weighed(key))));
    }
    barrier();
    uint to = at[0] + row * 3u * kDigits;
    for (uint i = t; i < kDigits; i += 256u) {
        if (counts[i] == 0u) continue;
        atomicAdd(histogram[to + i], counts[i]);
        if (row_nucleus)
            ADD_FIXED(histogram[to + kDigits + i], histogram[to + 2u * kDigits + i],
                      uvec2(lows[i], highs[i]));
    }
}
