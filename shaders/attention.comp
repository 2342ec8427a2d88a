#version 450
// Attention by chunks of 64 positions: of each the maximum, the sum of exponentials and the mixed
// values, for every row and query head. attention_merge.comp puts the chunks together.
//
// A workgroup has some query heads of one kv head, and some rows. Of a chunk that lies in the same
// slots for all of its rows (what is committed, or a prompt) it reads keys and values once; of the
// others, the last ones of a tree, once a row. A pair of a row and a head has the same operations
// in the same order either way.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"
#include "lib/half.glsl"

layout(constant_id = 0) const bool kHalfCache = true;
layout(constant_id = 1) const uint kHeads = 1u;   // query heads of a workgroup
layout(constant_id = 2) const uint kRows = 1u;    // rows; kHeads * kRows pairs, 16 at most
layout(constant_id = 3) const uint kGroups = 1u;  // of 64 invocations, with up to four pairs each
layout(local_size_x = 64, local_size_y_id = 3) in;
PARAMS(AttentionParams);
WRITES(0, float, partial);
READS(1, float, qkv);
READS(2, int, rows);
READS(3, int, pages);
READS(4, uint, k_cache);
READS(5, uint, v_cache);
#include "lib/rows.glsl"
#include "lib/partial.glsl"

const uint kOwnPairs = 4u, kMostPairs = 16u;
// Keys or values of a chunk are held by slabs of so many words a position; positions begin at
// different banks.
const uint kSlabWords = 64u, kStride = kSlabWords + 1u;
const uint kWordElements = kHalfCache ? 2u : 1u, kSlabElements = kSlabWords * kWordElements;

shared uint slab[64u * kStride];
shared vec4 queries[kMostPairs * 32u];         // of a slab's elements
shared float scores[kMostPairs * 64u];         // then their exponentials
shared float largest_of[kMostPairs * 16u];     // of each sixteenth of them
shared uint cached[64];                        // rows of the cache
shared uint row_begin[kMostPairs], row_end[kMostPairs];  // of the chunk

// What each row sees: positions [begin, end), none where it is padding; up to `plain` they lie in
// slots of their numbers.
struct Seen {
    uint begin, end, plain;
};
shared Seen seen[kMostPairs];

uint t, group, thread;  // of this invocation
uint first_row, kv_head, first_head;

uint place_of(uint r) {
    return at[2] + (p.first_row + first_row + r) * kRowWords;
}

Seen seen_by(uint r) {
    uint place = place_of(r);
    if (first_row + r >= p.rows || rows[place + kRowSlot] < 0) return Seen(0u, 0u, 0u);
    uint own = uint(rows[place + kRowPosition]), prefix = uint(rows[place + kRowPrefix]);
    bool is_plain = prefix == own && uint(rows[place + kRowSlot]) == own;
    return Seen(first_seen(place), own + 1u, is_plain ? own + 1u : prefix);
}

uint slot_of(uint place, uint position) {
    uint own = uint(rows[place + kRowPosition]), prefix = uint(rows[place + kRowPrefix]);
    if (position < prefix) return position;
    if (position < own) return uint(rows[place + kRowPath + position - prefix]);
    return uint(rows[place + kRowSlot]);
}

// Two elements of what the slab holds.
vec2 two_of(uint position, uint element) {
    uint from = position * kStride + element / kWordElements;
    if (!kHalfCache) return vec2(uintBitsToFloat(slab[from]), uintBitsToFloat(slab[from + 1u]));
    return vec2(half_value(slab[from] & 0xffffu), half_value(slab[from] >> 16));
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

// Words of a slab that begins at this element.
uint slab_words(uint element) {
    return min(kSlabElements, p.head_dim - element) / kWordElements;
}

void fetch_keys(uint element, uint begin, uint end) {
    uint words = slab_words(element), count = (end - begin) * words;
    uint column = (kv_head * p.head_dim + element) / kWordElements;
    for (uint i = thread; i < count; i += 64u * kGroups) {
        uint position = begin + i / words, word = i % words;
        slab[position * kStride + word] =
            k_cache[at[4] + cached[position] * p.k_stride + column + word];
    }
}
void fetch_values(uint element, uint begin, uint end) {
    uint words = slab_words(element), count = (end - begin) * words;
    uint column = (kv_head * p.head_dim + element) / kWordElements;
    for (uint i = thread; i < count; i += 64u * kGroups) {
        uint position = begin + i / words, word = i % words;
        slab[position * kStride + word] =
            v_cache[at[5] + cached[position] * p.v_stride + column + word];
    }
}

// Of pairs [first, last): rows of kHeads each.
void fetch_queries(uint element, uint first, uint last) {
    uint quads = min(kSlabElements, p.head_dim - element) / 4u;
    for (uint i = thread; i < (last - first) * quads; i += 64u * kGroups) {
        uint pair = first + i / quads, quad = i % quads;
        uint from = at[1] + (p.first_row + first_row + pair / kHeads) * p.qkv_stride +
                    (first_head + pair % kHeads) * p.head_dim + element + quad * 4u;
        queries[pair * 32u + quad] =
            vec4(qkv[from], qkv[from + 1u], qkv[from + 2u], qkv[from + 3u]);
    }
}

// Whether the pair's row sees anything of the chunk.
bool sees(uint pair) {
    return row_begin[pair / kHeads] < row_end[pair / kHeads];
}

uint place_of_part(uint chunk, uint pair) {
    uint r = pair / kHeads;
    return at[0] +
           partial_place(first_row + r, first_head + pair % kHeads, chunk - seen[r].begin / 64u);
}

// A chunk of pairs [first, last), whose rows find positions [begin, end) of it in `cached`.
void attend(uint chunk, uint first, uint last, uint begin, uint end) {
    uint own_pair = first + group * kOwnPairs;
    precise vec2 lanes[kOwnPairs * 8u];
    for (uint i = 0u; i < kOwnPairs * 8u; ++i) lanes[i] = vec2(0.0);
    for (uint element = 0u; element < p.head_dim; element += kSlabElements) {
        fetch_keys(element, begin, end);
        fetch_queries(element, first, last);
        barrier();
        uint count = min(kSlabElements, p.head_dim - element);
        for (uint d = 0u; d < count; d += 16u)
            [[unroll]] for (uint quad = 0u; quad < 4u; ++quad) {
                vec2 low = two_of(t, d + quad * 4u), high = two_of(t, d + quad * 4u + 2u);
                [[unroll]] for (uint j = 0u; j < kOwnPairs; ++j) {
                    vec4 q = queries[min(own_pair + j, kMostPairs - 1u) * 32u + d / 4u + quad];
                    uint lane = j * 8u + quad * 2u;
                    lanes[lane] = lanes[lane] + low * q.xy;
                    lanes[lane + 1u] = lanes[lane + 1u] + high * q.zw;
                }
            }
        barrier();
    }
    [[unroll]] for (uint j = 0u; j < kOwnPairs; ++j) {
        uint pair = own_pair + j;
        if (pair >= last) break;
        vec2 terms[8];
        for (uint i = 0u; i < 8u; ++i) terms[i] = lanes[j * 8u + i];
        uint r = pair / kHeads;
        precise float scaled = sum_of_lanes(terms) * p.scale;
        scores[pair * 64u + t] = t >= row_begin[r] && t < row_end[r] ? scaled : -kInfinity;
    }
    fetch_values(0u, begin, end);
    barrier();
    // Sixteen invocations a pair; a score that is no number is never the largest.
    uint pair = own_pair + t / 16u, lane = t % 16u;
    if (pair < last) {
        float largest = -kInfinity;
        for (uint i = lane; i < 64u; i += 16u)
            largest = scores[pair * 64u + i] > largest ? scores[pair * 64u + i] : largest;
        largest_of[pair * 16u + lane] = largest;
    }
    barrier();
    [[unroll]] for (uint j = 0u; j < kOwnPairs; ++j) {
        uint of = own_pair + j;
        if (of >= last) break;
        float largest = -kInfinity;
        for (uint i = 0u; i < 16u; ++i) largest = max(largest, largest_of[of * 16u + i]);
        precise float below = scores[of * 64u + t] - largest;
        scores[of * 64u + t] = exp_of(below);
    }
    barrier();
    if (pair < last && lane == 0u && sees(pair)) {
        float largest = -kInfinity;
        for (uint i = 0u; i < 16u; ++i) largest = max(largest, largest_of[pair * 16u + i]);
        precise vec2 sums[8];
        for (uint i = 0u; i < 8u; ++i) {
            sums[i] = vec2(0.0);
            for (uint j = pair * 64u + 2u * i; j < pair * 64u + 64u; j += 16u)
                sums[i] = sums[i] + vec2(scores[j], scores[j + 1u]);
        }
        uint to = place_of_part(chunk, pair);
        partial[to] = largest;
        partial[to + 1u] = sum_of_lanes(sums);
    }
    for (uint element = 0u; element < p.head_dim; element += kSlabElements) {
        if (element > 0u) {
            barrier();
            fetch_values(element, begin, end);
            barrier();
        }
        uint count = min(kSlabElements, p.head_dim - element), d = 2u * t;
        precise vec2 mixed[kOwnPairs];
        for (uint j = 0u; j < kOwnPairs; ++j) mixed[j] = vec2(0.0);
        if (d < count) {
            for (uint i = begin; i < end; ++i) {
                vec2 values = two_of(i, d);
                [[unroll]] for (uint j = 0u; j < kOwnPairs; ++j) {
                    uint of = min(own_pair + j, kMostPairs - 1u), r = of / kHeads;
                    precise vec2 more = mixed[j] + scores[of * 64u + i] * values;
                    mixed[j] = i >= row_begin[r] && i < row_end[r] ? more : mixed[j];
                }
            }
            [[unroll]] for (uint j = 0u; j < kOwnPairs; ++j) {
                if (own_pair + j >= last) break;
                if (!sees(own_pair + j)) continue;
                uint to = place_of_part(chunk, own_pair + j);
                partial[to + 2u + element + d] = mixed[j].x;
                partial[to + 3u + element + d] = mixed[j].y;
            }
        }
    }
    barrier();
}

// The chunk of rows [first, last); of several where it lies in slots of their numbers.
void attend_rows(uint chunk, uint first, uint last) {
    uint begin = 64u, end = 0u, before = chunk * 64u;
    for (uint r = first; r < last; ++r) {
        uint from = max(seen[r].begin, before) - before;
        uint to = clamp(seen[r].end, before, before + 64u) - before;
        if (thread == 0u) row_begin[r] = from;
        if (thread == 0u) row_end[r] = to;
        if (from >= to) continue;
        begin = min(begin, from);
        end = max(end, to);
    }
    if (begin >= end) return;
    uint place = place_of(first);
    uint pages_at = at[3] + uint(rows[place + kRowSequence]) * p.pages_stride;
    if (thread >= begin && thread < end) {
        uint position = before + thread;
        cached[thread] =
            cache_row(pages_at, last - first > 1u ? position : slot_of(place, position));
    }
    barrier();
    attend(chunk, first * kHeads, last * kHeads, begin, end);
}

void main() {
    t = gl_LocalInvocationID.x;
    group = gl_LocalInvocationID.y;
    thread = group * 64u + t;
    first_head = gl_WorkGroupID.x * kHeads;
    kv_head = first_head / p.group;
    first_row = gl_WorkGroupID.y * kRows;
    if (thread < kRows) seen[thread] = seen_by(thread);
    barrier();
    // Chunks [begin, alike) lie alike for all rows, those up to the end perhaps not.
    uint begin = 0xffffffffu, end = 0u, alike = 0xffffffffu;
    int sequence = rows[place_of(0u) + kRowSequence];
    for (uint r = 0u; r < kRows; ++r) {
        if (seen[r].end == 0u) continue;
        begin = min(begin, seen[r].begin / 64u);
        end = max(end, (seen[r].end + 63u) / 64u);
        if (seen[r].plain < seen[r].end) alike = min(alike, seen[r].plain / 64u);
        if (rows[place_of(r) + kRowSequence] != sequence) alike = 0u;
    }
    if (end == 0u) return;
    alike = clamp(alike, begin, end);
    uint items = alike - begin + (end - alike) * kRows;
    for (uint item = gl_WorkGroupID.z; item < items; item += gl_NumWorkGroups.z) {
        uint single = item - min(item, alike - begin);
        if (item < alike - begin)
            attend_rows(begin + item, 0u, kRows);
        else
            attend_rows(alike + single / kRows, single % kRows, single % kRows + 1u);
    }
}
