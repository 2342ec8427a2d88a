#version 450
// Attention by chunks of 64 positions: of each the maximum, the sum of exponentials and the mixed
// values, for every row and query head. attention_merge.comp puts the chunks together.
//
// A workgroup has some query heads of one kv head, and some rows. Of a chunk that lies in the same
// slots for all of its rows (what is committed, or a prompt) it reads keys and values once; of the
// others, the last ones of a tree, once a row. A pair of a row and a head has the same operations
// in the same order either way. Every 64 invocations have kOwn pairs, and each of them has kOwn
// scores of one pair, then kOwn elements of its mixed values. Sums of products it has of all kOwn
// pairs, of four positions and four lanes, so that each element that is read is of use to many.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"
#include "lib/half.glsl"

layout(constant_id = 0) const bool kHalfCache = true;
layout(constant_id = 1) const uint kGroups = 1u;  // of 64 invocations: 1, 2 or 4
layout(constant_id = 2) const uint kOwn = 1u;     // pairs of 64 invocations: 1 or 4
layout(constant_id = 3) const uint kAhead = 1u;   // quads that are fetched together: up to 16
layout(constant_id = 4) const uint kMixed = 4u;   // positions that are mixed together: 4 or 16
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
// Quads of words that make a slab's elements, how many of a chunk an invocation fetches, and how
// many positions lie between two of these.
const uint kQuads = kHalfCache ? 8u : 16u, kFetches = kQuads / kGroups;
const uint kApart = 64u * kGroups / kQuads;
const uint kTold = 65u;  // quads of sums, of a pair

shared vec4 slab[64u * kStride];
// Of 64 invocations: a slab's elements of what is asked for, then the exponentials of the scores.
// One place for both, and for the next two, so that four workgroups have the room of a unit with
// 99 KiB, and five that of a unit of RDNA 3.
shared vec4 queries[kMostGroups * kSlab];
shared vec4 reduced[kMostGroups * 16u];  // the largest scores, then terms of the sums
shared uint cached[64];                  // rows of the cache

// What each row sees: positions [begin, end), none where it is padding; up to `plain` they lie in
// slots of their numbers.
struct Seen {
    uint begin, end, plain;
    int sequence;
};
shared Seen seen[kMostRows];

uint t, group, thread;  // of this invocation
uint first_row, kv_head, first_head;
uint own, own_row, own_head;  // its pair of these 64 invocations, from the first row and head on
uint own_first;               // of the kOwn positions or elements that it has of it

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
// Quad `quad` of words of a position, whose elements begin at `to` in the slab. Values lie there in
// their order. Of 16 elements of a key those of lanes i, i + 4, i + 8 and i + 12 are quad i, since
// their sums are the first to be added, and so are those of a query.
void put_values(uint to, uint quad, uvec4 words) {
    to += quad * (16u / kQuads);
    if (kHalfCache) {
        slab[to] = floats_of(words.xy);
        slab[to + 1u] = floats_of(words.zw);
    } else {
        slab[to] = uintBitsToFloat(words);
    }
}
void put_keys(uint to, uint quad, uvec4 words) {
    uint four = quad * (16u / kQuads);
    to += four / 4u * 4u;
    vec4 low = kHalfCache ? floats_of(words.xy) : uintBitsToFloat(words);
    vec4 high = floats_of(words.zw);
    EACH(4u, i) {
        slab[to + i][four % 4u] = low[i];
        if (kHalfCache) slab[to + i][four % 4u + 1u] = high[i];
    }
}

// Of the cache: where the quad that this invocation fetches, of a slab that begins at this element
// of the head, lies in a row.
uint column_of(uint start, uint element) {
    uint most = (p.head_dim - element) * kQuads / kSlab;
    uint first = (kv_head * p.head_dim + element) * kQuads / kSlab;
    return start / 4u + first + min(t % kQuads, most - 1u);
}
void fetch_keys(uint element) {
    uint column = column_of(at[4], element), position = thread / kQuads;
    for (uint i = 0u; i < kFetches; i += kAhead) {
        uvec4 words[16];
        EACH(kAhead, j) {
            uint row = cached[position + (i + j) * kApart];
            words[j] = k_cache[row * (p.k_stride / 4u) + column];
        }
        EACH(kAhead, j)
            put_keys(position * kStride + (i + j) * kApart * kStride, t % kQuads, words[j]);
    }
}
void fetch_values(uint element) {
    uint column = column_of(at[5], element), position = thread / kQuads;
    for (uint i = 0u; i < kFetches; i += kAhead) {
        uvec4 words[16];
        EACH(kAhead, j) {
            uint row = cached[position + (i + j) * kApart];
            words[j] = v_cache[row * (p.v_stride / 4u) + column];
        }
        EACH(kAhead, j)
            put_values(position * kStride + (i + j) * kApart * kStride, t % kQuads, words[j]);
    }
}

// A row and a query head, what the row sees of a chunk (positions [sees.x, sees.y) of it; nothing
// if it is no pair), and where in `partial` it leaves what it finds there.
struct Pair {
    uint row, head, place;
    uvec2 sees;
};

// Of this invocation: a row of [first, after) and one of the heads.
Pair pair_at(uint chunk, uint first, uint after) {
    uint row = min(first + own_row, after - 1u), head = first_head + own_head;
    uint begin = seen[row].begin, before = chunk * 64u;
    uvec2 sees = clamp(uvec2(begin, seen[row].end), before, before + 64u) - before;
    uint place = at[0] + partial_place(first_row + row, head, chunk - begin / 64u);
    return Pair(row, head, place, first + own_row < after ? sees : uvec2(0u));
}

// Where four exponentials of the pair's scores lie, from a position on.
uint scores_at(uint position) {
    return (group * 16u + position / 4u) * kOwn + own;
}

// The dot products of the pair with the keys of its kOwn positions.
void find_products(Pair pair, out float products[4]) {
    uint from = at[1] + (p.first_row + first_row + pair.row) * p.qkv_stride +
                pair.head * p.head_dim;
    uint key = t / 4u * 4u * kStride + t % 4u, query = group * kOwn * (kSlab / 4u) + t % 4u;
    precise float lanes[64];
    EACH(16u * kOwn, i) lanes[i] = 0.0;
    for (uint element = 0u; element < p.head_dim; element += kSlab) {
        uint first = from + min(element + own_first, p.head_dim - kOwn);
        float asked[4];
        EACH(kOwn, i) asked[i] = qkv[first + i];
        fetch_keys(element);
        uint to = (group * kOwn + own) * (kSlab / 4u) + own_first / 16u * 4u + own_first % 4u;
        EACH(kOwn, i) queries[to + i][own_first / 4u % 4u] = asked[i];
        barrier();
        uint blocks = min(kSlab, p.head_dim - element) / 16u;
        for (uint block = 0u; block < blocks; ++block) {
            vec4 keys[4];
            EACH(4u, i) keys[i] = slab[key + block * 4u + i * kStride];
            EACH(kOwn, j) {
                vec4 asks = queries[query + block * 4u + j * (kSlab / 4u)];
                EACH(4u, i) EACH(4u, k) {
                    uint lane = (j * 4u + i) * 4u + k;
                    lanes[lane] = lanes[lane] + keys[i][k] * asks[k];
                }
            }
        }
        barrier();
    }
    // sum_of_lanes, the second half of it by what three others tell.
    EACH(kOwn, j) EACH(4u, i) {
        uint lane = (j * 4u + i) * 4u;
        precise float sum =
            (lanes[lane] + lanes[lane + 2u]) + (lanes[lane + 1u] + lanes[lane + 3u]);
        slab[(group * kOwn + j) * kTold + t][i] = sum;
    }
    barrier();
    uint told = (group * kOwn + own) * kTold + t / 4u * 4u;
    EACH(kOwn, i) {
        uint which = own_first % 4u + i;
        precise float sum = (slab[told][which] + slab[told + 2u][which]) +
                            (slab[told + 1u][which] + slab[told + 3u][which]);
        products[i] = sum;
    }
}

// Of the pair: the largest of what its invocations have.
float largest_of(float own_largest) {
    uint quads = 16u / kOwn, from = (group * kOwn + own) * quads, i = t / kOwn;
    reduced[from + i / 4u][i % 4u] = own_largest;
    barrier();
    vec4 largest = reduced[from];
    EACH(quads - 1u, quad) largest = max(largest, reduced[from + 1u + quad]);
    return max(max(largest.x, largest.y), max(largest.z, largest.w));
}

// Leaves the largest score and the sum of the exponentials of each pair: 16 invocations add what
// one of each pair puts together.
void put_sums(Pair pair, float largest) {
    uint from = (group * kOwn + own) * 4u;
    if (t < 16u) {
        precise float sums[4];
        EACH(kOwn, i) sums[i] = 0.0;
        EACH(4u, k) EACH(kOwn, i)
            sums[i] = sums[i] + queries[scores_at(own_first) + k * 4u * kOwn][own_first % 4u + i];
        EACH(kOwn, i) reduced[from + own_first / 4u][own_first % 4u + i] = sums[i];
    }
    barrier();
    if (t >= kOwn || pair.sees.x >= pair.sees.y) return;
    float terms[16];
    EACH(4u, quad) EACH(4u, i) terms[quad * 4u + i] = reduced[from + quad][i];
    partial[pair.place] = largest;
    partial[pair.place + 1u] = sum_of_lanes(terms);
}

// Adds a position of the values, by its place in the slab.
void mix(inout float mixed[4], uint place, float score) {
    EACH(kOwn, i) {
        precise float more = mixed[i] + score * slab[place][own_first % 4u + i];
        mixed[i] = more;
    }
}
void mix_some(inout float mixed[4], uint from, uint to) {
    [[dont_unroll]] for (uint i = from; i < to; ++i)
        mix(mixed, i * kStride + own_first / 4u, queries[scores_at(i)][i % 4u]);
}

// A chunk of the rows [first, after), which find its positions in `cached`.
void attend(uint chunk, uint first, uint after) {
    Pair pair = pair_at(chunk, first, after);
    float products[4];
    find_products(pair, products);
    precise float scaled[4];
    float largest = -kInfinity;
    EACH(kOwn, i) {
        scaled[i] = products[i] * p.scale;
        if (own_first + i < pair.sees.x || own_first + i >= pair.sees.y) scaled[i] = -kInfinity;
        largest = scaled[i] > largest ? scaled[i] : largest;  // never one that is no number
    }
    largest = largest_of(largest);
    EACH(kOwn, i) {
        precise float below = scaled[i] - largest;
        queries[scores_at(own_first)][own_first % 4u + i] = exp_of(below);
    }
    // Of whole quads as many as are mixed together.
    uint from = min((pair.sees.x + 3u) / 4u * 4u, pair.sees.y);
    uint to = pair.sees.y - (pair.sees.y - from) % kMixed;
    for (uint element = 0u; element < p.head_dim; element += kSlab) {
        fetch_values(element);
        barrier();
        float mixed[4];
        EACH(kOwn, i) mixed[i] = 0.0;
        mix_some(mixed, pair.sees.x, from);
        [[dont_unroll]] for (uint i = from / 4u; i < to / 4u; i += kMixed / 4u) {
            uint score = scores_at(0u) + i * kOwn, place = i * 4u * kStride + own_first / 4u;
            EACH(kMixed / 4u, quad) {
                vec4 scores = queries[score + quad * kOwn];
                EACH(4u, k) mix(mixed, place + (quad * 4u + k) * kStride, scores[k]);
            }
        }
        mix_some(mixed, to, pair.sees.y);
        if (element + own_first < p.head_dim && pair.sees.x < pair.sees.y)
            EACH(kOwn, i) partial[pair.place + 2u + element + own_first + i] = mixed[i];
        barrier();
    }
    put_sums(pair, largest);
}

// The chunk of rows [first, last); of several where it lies in slots of their numbers. What any of
// them sees is within what they see.
void attend_rows(uint chunk, uint first, uint last, Seen within) {
    uint before = chunk * 64u, pages_at = at[3] + uint(within.sequence) * p.pages_stride;
    uint begin = max(within.begin, before) - before;
    uint end = clamp(within.end, before, before + 64u) - before;
    if (begin >= end) return;
    barrier();  // of what the item before has read
    if (thread < 64u) {  // positions that nobody sees are copies of those that somebody does
        uint slot = before + clamp(thread, begin, end - 1u);
        if (last - first == 1u) slot = slot_of(place_of(first), slot);
        cached[thread] = cache_row(pages_at, slot);
    }
    barrier();
    attend(chunk, first, last);
}

void main() {
    t = gl_LocalInvocationID.x;
    group = gl_LocalInvocationID.y;
    thread = group * 64u + t;
    first_head = gl_WorkGroupID.x * p.own_heads;
    kv_head = first_head / p.group;
    first_row = gl_WorkGroupID.y * p.own_rows;
    own = t % kOwn;
    own_first = t / kOwn * kOwn;
    own_row = (group * kOwn + own) / p.own_heads;
    own_head = (group * kOwn + own) % p.own_heads;
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
