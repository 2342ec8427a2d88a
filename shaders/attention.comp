#version 450
// A workgroup takes some of the chunks of 64 logical positions of one query head of one row: of each
// the maximum, the sum of exponentials and the mixed values. attention_merge.comp puts the chunks
// together.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"
#include "lib/half.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const bool kHalfCache = true;
PARAMS(AttentionParams);
WRITES(0, float, partial);
READS(1, float, qkv);
READS(2, int, rows);
READS(3, int, pages);
READS(4, uint, k_cache);
READS(5, uint, v_cache);
#include "lib/rows.glsl"
#include "lib/partial.glsl"

shared float scores[64];
shared uint cached[64];  // rows of the cache

uint slot_of(uint place, uint position) {
    uint own = uint(rows[place + kRowPosition]), prefix = uint(rows[place + kRowPrefix]);
    if (position < prefix) return position;
    if (position < own) return uint(rows[place + kRowPath + position - prefix]);
    return uint(rows[place + kRowSlot]);
}

vec2 two_keys(uint from, uint i) {
    if (!kHalfCache)
        return vec2(uintBitsToFloat(k_cache[from + i]), uintBitsToFloat(k_cache[from + i + 1u]));
    uint word = k_cache[from + i / 2u];
    return vec2(half_value(word & 0xffffu), half_value(word >> 16));
}
vec2 two_values(uint from, uint i) {
    if (!kHalfCache)
        return vec2(uintBitsToFloat(v_cache[from + i]), uintBitsToFloat(v_cache[from + i + 1u]));
    uint word = v_cache[from + i / 2u];
    return vec2(half_value(word & 0xffffu), half_value(word >> 16));
}

// In 16 lanes, halved in a fixed order (core/arithmetic.h).
float sum_of_lanes(vec2 terms[8]) {
    precise vec2 lanes[8] = terms;
    for (uint i = 0u; i < 4u; ++i) lanes[i] = lanes[i] + lanes[i + 4u];
    for (uint i = 0u; i < 2u; ++i) lanes[i] = lanes[i] + lanes[i + 2u];
    precise vec2 two = lanes[0] + lanes[1];
    precise float one = two.x + two.y;
    return one;
}

float score(uint q, uint k) {
    precise vec2 lanes[8];
    for (uint i = 0u; i < 8u; ++i) lanes[i] = vec2(0.0);
    for (uint d = 0u; d < p.head_dim; d += 16u)
        for (uint i = 0u; i < 8u; ++i) {
            uint e = d + 2u * i;
            lanes[i] = lanes[i] + two_keys(k, e) * vec2(qkv[q + e], qkv[q + e + 1u]);
        }
    precise float scaled = sum_of_lanes(lanes) * p.scale;
    return scaled;
}

// The part of one of the row's chunks, to `partial`.
void attend(uint row, uint head, uint chunk) {
    uint t = gl_LocalInvocationID.x, place = at[2] + row * kRowWords;
    uint length = uint(rows[place + kRowPosition]) + 1u, column = head / p.group * p.head_dim;
    uint pages_at = at[3] + uint(rows[place + kRowSequence]) * p.pages_stride;
    uint column_words = kHalfCache ? column / 2u : column;
    uint seen = first_seen(place), first = (seen / 64u + chunk) * 64u;
    uint begin = max(seen, first) - first, end = min(64u, length - first);
    uint to = at[0] + partial_place(head, chunk);
    float own = -kInfinity;
    if (t >= begin && t < end) {
        cached[t] = cache_row(pages_at, slot_of(place, first + t));
        own = score(at[1] + row * p.qkv_stride + head * p.head_dim,
                    at[4] + cached[t] * p.k_stride + column_words);
    }
    scores[t] = own;
    barrier();
    float largest = -kInfinity;
    for (uint i = 0u; i < 64u; ++i) largest = scores[i] > largest ? scores[i] : largest;
    barrier();
    precise float below = own - largest;
    scores[t] = exp_of(below);
    barrier();
    if (t == 0u) {
        precise vec2 lanes[8];
        for (uint i = 0u; i < 8u; ++i) {
            lanes[i] = vec2(0.0);
            for (uint j = 0u; j < 64u; j += 16u)
                lanes[i] = lanes[i] + vec2(scores[j + 2u * i], scores[j + 2u * i + 1u]);
        }
        partial[to] = largest;
        partial[to + 1u] = sum_of_lanes(lanes);
    }
    for (uint d = 2u * t; d < p.head_dim; d += 128u) {
        precise vec2 mixed = vec2(0.0);
        for (uint i = begin; i < end; ++i)
            mixed =
                mixed + scores[i] * two_values(at[5] + cached[i] * p.v_stride + column_words, d);
        partial[to + 2u + d] = mixed.x;
        partial[to + 3u + d] = mixed.y;
    }
    barrier();
}

void main() {
    uint row = p.first_row + gl_WorkGroupID.y, chunks = chunks_of(at[2] + row * kRowWords);
    for (uint chunk = gl_WorkGroupID.z; chunk < chunks; chunk += gl_NumWorkGroups.z)
        attend(row, gl_WorkGroupID.x, chunk);
}
