#version 450
// Attention by chunks of 64 positions: of each the maximum, the sum of exponentials and the mixed
// values, for every row and query head. attention_merge.comp puts the chunks together.
//
// A workgroup has some query heads of one kv head, and some rows. Of a chunk that lies in the same
// slots for all of its rows (what is committed, or a prompt) it reads keys and values once; of the
// others, the last ones of a tree, once a row. A pair of a row and a head has the same operations
// in the same order either way. Every 64 invocations have kOwn pairs, a component each.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"
#include "lib/half.glsl"

layout(constant_id = 0) const bool kHalfCache = true;
layout(constant_id = 1) const uint kGroups = 1u;  // of 64 invocations: 1, 2 or 4
layout(constant_id = 2) const uint kOwn = 1u;     // pairs of 64 invocations: 1 or 4
layout(constant_id = 3) const uint kAhead = 1u;   // quads that are fetched together: up to 16
layout(constant_id = 4) const uint kMixed = 1u;   // positions that are mixed together: 1 or 8
layout(local_size_x = 64, local_size_y_id = 1) in;
PARAMS(AttentionParams);
WRITES(0, float, partial);
READS(1, float, qkv);
READS(2, int, rows);
READS(3, int, pages);
READS(4, uvec4, k_cache);
READS(5, uvec4, v_cache);
#include "lib/rows.glsl"
#include "lib/partial.glsl"

#define EACH(count, i) [[unroll]] for (uint i = 0u; i < count; ++i)
#include "lib/attended.glsl"

const uint kMostGroups = 4u, kMostRows = 16u;
// Keys or values of a chunk are held by slabs of 64 elements a position, positions a quad apart.
const uint kSlab = 64u, kStride = kSlab / 4u + 1u;
// Quads of words that make a slab's elements, and how many of a chunk an invocation fetches.
const uint kQuads = kHalfCache ? 8u : 16u, kFetches = kQuads / kGroups, kStep = 64u * kGroups;

shared vec4 slab[64u * kStride];
// Of 64 invocations: what is asked for, by a slab's elements; behind that what is reduced, from 0
// on the sums of lanes, and the largest score of each eighth. In place of arrays of their own, so
// that five workgroups have the room of a unit of RDNA 3.
shared vec4 queries[kMostGroups * kSlab];
const uint kLargest = 32u;
shared vec4 scores[kMostGroups * 64u];  // then their exponentials
shared uint cached[64];                 // rows of the cache

// What each row sees: positions [begin, end), none where it is padding; up to `plain` they lie in
// slots of their numbers.
struct Seen {
    uint begin, end, plain;
    int sequence;
};
shared Seen seen[kMostRows];

uint t, group, thread;  // of this invocation
uint first_row, kv_head, first_head;
uint own_row[4], own_head[4];  // pairs of these 64 invocations, from the first row and head on

uint place_of(uint r) {
    return at[2] + (p.first_row + first_row + r) * kRowWords;
}

Seen seen_by(uint r) {
    uint place = place_of(r);
    if (first_row + r >= p.rows || rows[place + kRowSlot] < 0) return Seen(0u, 0u, 0u, 0);
    uint own = uint(rows[place + kRowPosition]), prefix = uint(rows[place + kRowPrefix]);
    bool is_plain = prefix == own && uint(rows[place + kRowSlot]) == own;
    return Seen(first_seen(place), own + 1u, is_plain ? own + 1u : prefix,
                rows[place + kRowSequence]);
}

vec4 floats_of(uvec2 words) {
    return vec4(half_value(words.x & 0xffffu), half_value(words.x >> 16),
                half_value(words.y & 0xffffu), half_value(words.y >> 16));
}
void put(uint i, uvec4 words) {
    uint to = i / kQuads * kStride + i % kQuads * (16u / kQuads);
    if (kHalfCache) {
        slab[to] = floats_of(words.xy);
        slab[to + 1u] = floats_of(words.zw);
    } else {
        slab[to] = uintBitsToFloat(words);
    }
}

// Of the cache: quad i of the slab's positions that begins at this element of the head; positions
// that nobody sees are copies of those that somebody does.
uint quad_at(uint start, uint stride, uint element, uint i, uint begin, uint end) {
    uint position = clamp(i / kQuads, begin, end - 1u);
    uint most = (p.head_dim - element) * kQuads / kSlab;
    uint column = (kv_head * p.head_dim + element) * kQuads / kSlab + min(i % kQuads, most - 1u);
    return start / 4u + cached[position] * (stride / 4u) + column;
}
void fetch_keys(uint element, uint begin, uint end) {
    for (uint i = 0u; i < kFetches; i += kAhead) {
        uvec4 words[16];
        EACH(kAhead, j)
            words[j] = k_cache[quad_at(at[4], p.k_stride, element, thread + (i + j) * kStep, begin, end)];
        EACH(kAhead, j) put(thread + (i + j) * kStep, words[j]);
    }
}
void fetch_values(uint element, uint begin, uint end) {
    for (uint i = 0u; i < kFetches; i += kAhead) {
        uvec4 words[16];
        EACH(kAhead, j)
            words[j] = v_cache[quad_at(at[5], p.v_stride, element, thread + (i + j) * kStep, begin, end)];
        EACH(kAhead, j) put(thread + (i + j) * kStep, words[j]);
    }
}

// A row and a query head, what the row sees of a chunk (positions [sees.x, sees.y) of it; nothing if
// it is no pair), and where in `partial` it leaves what it finds there.
struct Pair {
    uint row, head, place;
    uvec2 sees;
};

// Of these 64 invocations: a row of [first, after) and one of the heads.
Pair pair_at(uint chunk, uint j, uint first, uint after) {
    uint row = min(first + own_row[j], after - 1u), head = first_head + own_head[j];
    uint begin = seen[row].begin, before = chunk * 64u;
    uvec2 sees = clamp(uvec2(begin, seen[row].end), before, before + 64u) - before;
    uint place = at[0] + partial_place(first_row + row, head, chunk - begin / 64u);
    return Pair(row, head, place, first + own_row[j] < after ? sees : uvec2(0u));
}

float query_of(Pair pair, uint element) {
    return qkv[at[1] + (p.first_row + first_row + pair.row) * p.qkv_stride +
               pair.head * p.head_dim + min(element + t, p.head_dim - 1u)];
}

// Of each pair.
vec4 largest_scores() {
    vec4 largest = queries[group * kSlab + kLargest];
    EACH(7u, i) largest = max(largest, queries[group * kSlab + kLargest + 1u + i]);
    return largest;
}

// Leaves the largest score and the sum of the exponentials of each pair: 16 invocations a pair add
// what one of them puts together.
void put_sums(Pair pairs[4]) {
    if (t < 16u * kOwn) {
        precise float sum = 0.0;
        EACH(4u, i) sum = sum + scores[group * 64u + i * 16u + t % 16u][t / 16u];
        queries[group * kSlab + t / 4u][t % 4u] = sum;
    }
    barrier();
    Pair own = pairs[0];
    EACH(kOwn, j) if (t == j) own = pairs[j];
    if (t >= kOwn || own.sees.x >= own.sees.y) return;
    float terms[16];
    EACH(4u, quad) EACH(4u, i) terms[quad * 4u + i] = queries[group * kSlab + t * 4u + quad][i];
    partial[own.place] = largest_scores()[t];
    partial[own.place + 1u] = sum_of_lanes(terms);
}

// Adds positions [from, to) of the values, an element of them; each pair's those that it sees.
void mix_seen(inout float mixed[4], Pair pairs[4], uint from, uint to) {
    [[dont_unroll]] for (uint i = from; i < to; ++i) {
        float value = slab[i * kStride + t / 4u][t % 4u];
        EACH(kOwn, j) {
            precise float more = mixed[j] + scores[group * 64u + i][j] * value;
            mixed[j] = i >= pairs[j].sees.x && i < pairs[j].sees.y ? more : mixed[j];
        }
    }
}

// A chunk of the rows [first, after), which find positions [begin, end) of it in `cached`.
void attend(uint chunk, uint first, uint after, uint begin, uint end) {
    Pair pairs[4];
    uint all_from = begin, all_to = end;  // what all of them see
    EACH(kOwn, j) {
        pairs[j] = pair_at(chunk, j, first, after);
        all_from = max(all_from, pairs[j].sees.x);
        all_to = min(all_to, pairs[j].sees.y);
    }
    all_to = max(all_to, begin);
    all_from = min(all_from, all_to);
    all_to -= (all_to - all_from) % kMixed;

    precise float lanes[64];  // 16 a pair
    EACH(64u, i) lanes[i] = 0.0;
    for (uint element = 0u; element < p.head_dim; element += kSlab) {
        float query[4];
        EACH(kOwn, j) query[j] = query_of(pairs[j], element);
        fetch_keys(element, begin, end);
        EACH(kOwn, j) queries[thread][j] = query[j];
        barrier();
        uint count = min(kSlab, p.head_dim - element);
        for (uint d = 0u; d < count; d += 16u)
            EACH(4u, quad) {
                vec4 keys = slab[t * kStride + d / 4u + quad];
                EACH(4u, i) EACH(kOwn, j) {
                    uint lane = quad * 4u + i;
                    lanes[j * 16u + lane] = lanes[j * 16u + lane] +
                                            keys[i] * queries[group * kSlab + d + lane][j];
                }
            }
        barrier();
    }
    precise float scaled[4];
    EACH(kOwn, j) {
        float terms[16];
        EACH(16u, i) terms[i] = lanes[j * 16u + i];
        scaled[j] = sum_of_lanes(terms) * p.scale;
        if (t < pairs[j].sees.x || t >= pairs[j].sees.y) scaled[j] = -kInfinity;
        scores[thread][j] = scaled[j];
    }
    barrier();
    if (t < 8u * kOwn) {  // a score that is no number is never the largest
        float largest = -kInfinity;
        EACH(8u, i) {
            float score = scores[group * 64u + i * 8u + t % 8u][t / 8u];
            largest = score > largest ? score : largest;
        }
        queries[group * kSlab + kLargest + t % 8u][t / 8u] = largest;
    }
    barrier();
    vec4 most = largest_scores();
    EACH(kOwn, j) {
        precise float below = scaled[j] - most[j];
        scores[thread][j] = exp_of(below);
    }
    for (uint element = 0u; element < p.head_dim; element += kSlab) {
        fetch_values(element, begin, end);
        barrier();
        precise float mixed[4];
        EACH(kOwn, j) mixed[j] = 0.0;
        mix_seen(mixed, pairs, begin, all_from);
        [[dont_unroll]] for (uint i = all_from; i < all_to; i += kMixed)
            EACH(kMixed, k) {
                float value = slab[(i + k) * kStride + t / 4u][t % 4u];
                EACH(kOwn, j) mixed[j] = mixed[j] + scores[group * 64u + i + k][j] * value;
            }
        mix_seen(mixed, pairs, all_to, end);
        if (element + t < p.head_dim)
            EACH(kOwn, j)
                if (pairs[j].sees.x < pairs[j].sees.y)
                    partial[pairs[j].place + 2u + element + t] = mixed[j];
        barrier();
    }
    put_sums(pairs);
}

// The chunk of rows [first, last); of several where it lies in slots of their numbers. What any of
// them sees is within what they see.
void attend_rows(uint chunk, uint first, uint last, Seen within) {
    uint before = chunk * 64u, pages_at = at[3] + uint(within.sequence) * p.pages_stride;
    uint begin = max(within.begin, before) - before;
    uint end = clamp(within.end, before, before + 64u) - before;
    if (begin >= end) return;
    barrier();  // of what the item before has read
    if (thread >= begin && thread < end) {
        uint slot = before + thread;
        if (last - first == 1u) slot = slot_of(place_of(first), slot);
        cached[thread] = cache_row(pages_at, slot);
    }
    barrier();
    attend(chunk, first, last, begin, end);
}

void main() {
    t = gl_LocalInvocationID.x;
    group = gl_LocalInvocationID.y;
    thread = group * 64u + t;
    first_head = gl_WorkGroupID.x * p.own_heads;
    kv_head = first_head / p.group;
    first_row = gl_WorkGroupID.y * p.own_rows;
    EACH(kOwn, j) {
        own_row[j] = (group * kOwn + j) / p.own_heads;
        own_head[j] = (group * kOwn + j) % p.own_heads;
    }
    if (thread < p.own_rows) seen[thread] = seen_by(thread);
    barrier();
    // What any of the rows sees; of its chunks [begin, alike) lie alike for all, the others perhaps
    // not.
    Seen any = Seen(0xffffffffu, 0u, 0xffffffffu, 0);
    bool one_text = true;
    [[dont_unroll]] for (uint r = 0u; r < p.own_rows; ++r) {
        if (seen[r].end == 0u) continue;
        if (any.end > 0u && seen[r].sequence != any.sequence) one_text = false;
        any.begin = min(any.begin, seen[r].begin);
        any.end = max(any.end, seen[r].end);
        if (seen[r].plain < seen[r].end) any.plain = min(any.plain, seen[r].plain);
        any.sequence = seen[r].sequence;
    }
    if (any.end == 0u) return;
    uint begin = any.begin / 64u, end = (any.end + 63u) / 64u;
    uint alike = one_text ? clamp(any.plain / 64u, begin, end) : begin;
    uint items = alike - begin + (end - alike) * p.own_rows;
    for (uint item = gl_WorkGroupID.z; item < items; item += gl_NumWorkGroups.z) {
        uint single = item - min(item, alike - begin), row = single % p.own_rows;
        bool together = item < alike - begin;
        Seen sees = any;
        if (!together) sees = seen[row];
        attend_rows(together ? begin + item : alike + single / p.own_rows, together ? 0u : row,
                    together ? p.own_rows : row + 1u, sees);
    }
}
