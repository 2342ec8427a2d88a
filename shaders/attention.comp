#version 450
// A workgroup takes some of the chunks of 64 logical positions of one query head of one row: of each
// the maximum, the sum of exponentials and the mixed values. The last workgroup to finish puts all
// chunks together in their order: out = out * keep + chunk * weight; for as many heads as make
// whole groups of 32 outputs.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"
#include "lib/half.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 1) const bool kHalfCache = true;
PARAMS(AttentionParams);
layout(binding = 6, std430) coherent buffer Partial {
    float partial[];  // [rows][heads][chunks]: maximum, sum, head_dim values
};
layout(binding = 7, std430) coherent buffer Finished {
    uint finished[];  // [rows][heads / together]: workgroups; 0 between dispatches
};
READS(1, float, qkv);
READS(2, int, rows);
READS(3, int, pages);
READS(4, uint, k_cache);
READS(5, uint, v_cache);
#include "lib/rows.glsl"
#include "lib/output.glsl"

shared float scores[64];
shared uint cached[64];  // rows of the cache

const uint kMostChunks = 1024u, kMostTogether = 2u;
shared float keep[kMostTogether * kMostChunks];
shared float weight[kMostTogether * kMostChunks];
shared float inverse_sum[kMostTogether];
shared bool is_last;
uint chunks;

uint partial_at(uint head, uint chunk) {
    return at[6] + ((gl_WorkGroupID.y * p.heads + head) * p.most_chunks + chunk) * (p.head_dim + 2u);
}

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

// The chunk's part of the row, to `partial`.
void attend(uint row, uint head, uint chunk) {
    uint t = gl_LocalInvocationID.x, place = at[2] + row * kRowWords;
    uint length = uint(rows[place + kRowPosition]) + 1u, column = head / p.group * p.head_dim;
    uint pages_at = at[3] + uint(rows[place + kRowSequence]) * p.pages_stride;
    uint column_words = kHalfCache ? column / 2u : column;
    uint count = min(64u, length - chunk * 64u), to = partial_at(head, chunk);
    float own = -kInfinity;
    if (t < count) {
        cached[t] = cache_row(pages_at, slot_of(place, chunk * 64u + t));
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
        for (uint i = 0u; i < count; ++i)
            mixed =
                mixed + scores[i] * two_values(at[5] + cached[i] * p.v_stride + column_words, d);
        partial[to + 2u + d] = mixed.x;
        partial[to + 3u + d] = mixed.y;
    }
    barrier();
}

// What is kept of the chunks before, and how much of this one comes.
void weigh(uint head, uint chunk) {
    float before = -kInfinity;
    for (uint i = 0u; i < chunk; ++i) before = max(before, partial[partial_at(head, i)]);
    float own = partial[partial_at(head, chunk)], now = own > before ? own : before;
    precise float lost = before - now, risen = own - now;
    uint i = head % p.together * kMostChunks + chunk;
    keep[i] = exp_of(lost);
    weight[i] = exp_of(risen);
}

float value(uint row, uint i) {
    uint head = i / p.head_dim, d = i % p.head_dim, first = head % p.together * kMostChunks;
    precise float mixed = 0.0;
    for (uint chunk = 0u; chunk < chunks; ++chunk)
        mixed = mixed * keep[first + chunk] +
                partial[partial_at(head, chunk) + 2u + d] * weight[first + chunk];
    precise float scaled = mixed * inverse_sum[head % p.together];
    return scaled;
}

// Puts the chunks of some heads together and writes their outputs.
void merge(uint row, uint first_head) {
    uint t = gl_LocalInvocationID.x;
    for (uint i = t; i < chunks * p.together; i += 64u) weigh(first_head + i / chunks, i % chunks);
    barrier();
    if (t < p.together) {
        precise float sum = 0.0;
        for (uint chunk = 0u; chunk < chunks; ++chunk)
            sum = sum * keep[t * kMostChunks + chunk] +
                  partial[partial_at(first_head + t, chunk) + 1u] * weight[t * kMostChunks + chunk];
        inverse_sum[t] = chunks == 0u ? 0.0 : reciprocal(sum);
    }
    barrier();
    for (uint unit = t; unit < p.units; unit += 64u)
        write_unit(row, first_head / p.together * p.units + unit, p.out_stride);
}

void main() {
    uint head = gl_WorkGroupID.x, row = p.first_row + gl_WorkGroupID.y;
    uint place = at[2] + row * kRowWords, own = head / p.together;
    chunks = rows[place + kRowSlot] < 0 ? 0u : uint(rows[place + kRowPosition]) / 64u + 1u;
    for (uint chunk = gl_WorkGroupID.z; chunk < chunks; chunk += gl_NumWorkGroups.z)
        attend(row, head, chunk);
    // What this workgroup wrote is seen by whoever sees its count.
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
        uint counter = at[7] + gl_WorkGroupID.y * p.heads / p.together + own;
        uint before = atomicAdd(finished[counter], 1u);
        is_last = before + 1u == p.together * gl_NumWorkGroups.z;
        if (is_last) finished[counter] = 0u;
    }
    barrier();
    if (!is_last) return;
    memoryBarrierBuffer();
    merge(row, own * p.together);
}
