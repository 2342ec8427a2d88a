#version 450
// Rotates queries and keys by position, and rounds keys and values into the cache. An invocation
// has two neighbouring rotations of a head, or four values.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const bool kHalfCache = true;
PARAMS(RopeParams);
WRITES(0, float, qkv);
READS(1, float, rope);
READS(2, int, rows);
READS(3, int, pages);
WRITES(4, uint, k_cache);
WRITES(5, uint, v_cache);
#include "lib/cache_rows.glsl"

void main() {
    uint row = gl_WorkGroupID.y, units = p.head_dim / 4u;  // units per head
    uint head = gl_GlobalInvocationID.x / units, unit = gl_GlobalInvocationID.x % units;
    uint place = at[2] + row * kRowWords;
    int slot = rows[place + kRowSlot];
    if (head >= p.heads + 2u * p.kv_heads || slot < 0) return;
    uint from = at[0] + row * p.qkv_stride + head * p.head_dim;
    uint cached = cache_row(at[3] + uint(rows[place + kRowSequence]) * p.pages_stride, uint(slot));
    if (head >= p.heads + p.kv_heads) {
        uint to = at[5] + cached * p.v_stride, i = unit * 4u;
        uint first = (head - p.heads - p.kv_heads) * p.head_dim + i;
        store_v(to, first, vec2(qkv[from + i], qkv[from + i + 1u]));
        store_v(to, first + 2u, vec2(qkv[from + i + 2u], qkv[from + i + 3u]));
        return;
    }
    uint i = unit * 2u, half_dim = p.head_dim / 2u;
    uint angle = at[1] + uint(rows[place + kRowPosition]) * p.rope_stride + i;
    vec2 low = vec2(qkv[from + i], qkv[from + i + 1u]);
    vec2 high = vec2(qkv[from + half_dim + i], qkv[from + half_dim + i + 1u]);
    rotate(low, high, vec2(rope[angle], rope[angle + 1u]),
           vec2(rope[angle + half_dim], rope[angle + half_dim + 1u]));
    qkv[from + i] = low.x;
    qkv[from + i + 1u] = low.y;
    qkv[from + half_dim + i] = high.x;
    qkv[from + half_dim + i + 1u] = high.y;
    if (head < p.heads) return;
    uint to = at[4] + cached * p.k_stride, first = (head - p.heads) * p.head_dim + i;
    store_k(to, first, low);
    store_k(to, first + half_dim, high);
}
