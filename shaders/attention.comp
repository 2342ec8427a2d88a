#version 450
// Attention by chunks of 64 positions: for every row, query head and chunk the maximum of S = Q K^T
// * scale, the sum of P = exp(S - maximum), and P V. attention_merge.comp merges the chunks.
//
// A workgroup has some query heads of one kv head, and some rows. If a chunk lies in the same slots
// for all of its rows (committed positions, or a prompt), the workgroup loads its K and V once; the
// other chunks, the last ones of a tree, it loads once per row. A pair of a row and a head goes
// through the same operations in the same order either way. Every 64 invocations have kOwn pairs.
// Each invocation has kOwn scores of one pair, then kOwn elements of its P V. While S is computed
// it has partial sums of all kOwn pairs, for four positions and four lanes, so that each element
// that is loaded is used many times.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"
#include "lib/half.glsl"

layout(constant_id = 0) const bool kHalfCache = true;
layout(constant_id = 1) const uint kGroups = 1u;  // groups of 64 invocations: 1, 2 or 4
layout(constant_id = 2) const uint kOwn = 1u;     // pairs per group: 1 or 4
layout(constant_id = 3) const uint kAhead = 1u;   // quads that are loaded at once: up to 16
layout(constant_id = 4) const uint kMixed = 4u;   // positions of V in an iteration: 4 or 16
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

const uint kMaxGroups = 4u, kMaxRows = 16u;
// K or V of a chunk is loaded in slabs of 64 elements per position; positions are padded by a quad.
const uint kSlab = 64u, kStride = kSlab / 4u + 1u;
// kQuads: quads of the cache in 64 elements of a position. kFetches: quads that an invocation loads
// of a slab. kApart: positions from one of these to the next.
const uint kQuads = kHalfCache ? 8u : 16u, kFetches = kQuads / kGroups;
const uint kApart = 64u * kGroups / kQuads;
const uint kLaneSums = 65u;  // quads of partial sums per pair

shared vec4 slab[64u * kStride];
// Per group: a slab of Q, later P. Both are in one place, and so are the two uses of `reduced`, so
// that four workgroups fit into a compute unit with 99 KiB, and five into one of RDNA 3.
shared vec4 queries[kMaxGroups * kSlab];
shared vec4 reduced[kMaxGroups * 16u];  // maxima of S, then lanes of the sums of P
shared uint cached[64];                  // cache rows of a chunk's positions

// The positions [begin, end) that a row attends to; none if it is a padding row. Positions below
// `plain` lie in the slots of the same numbers.
struct Seen {
    uint begin, end, plain;
    int sequence;
};
shared Seen seen[kMaxRows];

uint t, group, thread;  // t: in its group; thread: in the workgroup
uint first_row, kv_head, first_head;
uint pair_number, pair_row, pair_head;  // its pair in the group; the pair's row and head, from the
                              // workgroup's first on
uint own_first;               // the first of the pair's kOwn positions or elements that it has

uint place_of(uint r) {
    return at[2] + (p.first_row + first_row + r) * kRowWords;
}

Seen seen_by(uint r) {
    uint place = place_of(r);
    if (first_row + r >= p.rows || rows[place + kRowSlot] < 0) return Seen(0u, 0u, 0u, 0);
    uint position = uint(rows[place + kRowPosition]), prefix = uint(rows[place + kRowPrefix]);
    bool is_plain = prefix == position && uint(rows[place + kRowSlot]) == position;
    return Seen(first_seen(place), position + 1u, is_plain ? position + 1u : prefix,
                rows[place + kRowSequence]);
}

vec4 floats_of(uvec2 words) {
    return vec4(half_value(words.x & 0xffffu), half_value(words.x >> 16),
                half_value(words.y & 0xffffu), half_value(words.y >> 16));
}
// Store quad `quad` of a position, the elements of which begin at `to` in the slab. V keeps its
// order. In each 16 elements of K, elements i, i + 4, i + 8 and i + 12 become quad i, since their
// lanes are the first to be added; Q is stored alike.
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

// The quad of a cache row that this invocation loads, for the slab that begins at `element` of the
// head. `start` is the first word of the cache. Quads beyond the head are copies of its last one.
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

// A row and a query head. The row attends to positions [sees.x, sees.y) of the chunk, to none if
// there is no such pair; `place` is the pair's partial result.
struct Pair {
    uint row, head, place;
    uvec2 sees;
};

// The pair of this invocation, with a row of [first, after).
Pair pair_at(uint chunk, uint first, uint after) {
    uint row = min(first + pair_row, after - 1u), head = first_head + pair_head;
    uint begin = seen[row].begin, before = chunk * 64u;
    uvec2 sees = clamp(uvec2(begin, seen[row].end), before, before + 64u) - before;
    uint place = at[0] + partial_place(first_row + row, head, chunk - begin / 64u);
    return Pair(row, head, place, first + pair_row < after ? sees : uvec2(0u));
}

// The quad of `queries` with the pair's P at four positions, from `position` on.
uint scores_at(uint position) {
    return (group * 16u + position / 4u) * kOwn + pair_number;
}

// The dot products of the pair's Q with K, for the kOwn positions of this invocation.
void find_products(Pair pair, out float products[4]) {
    // The last workgroup may have rows beyond the last one, which read that one's Q.
    uint row = p.first_row + min(first_row + pair.row, p.rows - 1u);
    uint from = at[1] + row * p.qkv_stride + pair.head * p.head_dim;
    uint key = t / 4u * 4u * kStride + t % 4u, query = group * kOwn * (kSlab / 4u) + t % 4u;
    precise float lanes[64];
    EACH(16u * kOwn, i) lanes[i] = 0.0;
    for (uint element = 0u; element < p.head_dim; element += kSlab) {
        uint first = from + min(element + own_first, p.head_dim - kOwn);
        float asked[4];
        EACH(kOwn, i) asked[i] = qkv[first + i];
        fetch_keys(element);
        uint to = (group * kOwn + pair_number) * (kSlab / 4u) + own_first / 16u * 4u + own_first % 4u;
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
    // The lanes are added as in sum_of_lanes(): first those of this invocation, then its sums and
    // those of three neighbours.
    EACH(kOwn, j) EACH(4u, i) {
        uint lane = (j * 4u + i) * 4u;
        precise float sum =
            (lanes[lane] + lanes[lane + 2u]) + (lanes[lane + 1u] + lanes[lane + 3u]);
        slab[(group * kOwn + j) * kLaneSums + t][i] = sum;
    }
    barrier();
    uint sums_at = (group * kOwn + pair_number) * kLaneSums + t / 4u * 4u;
    EACH(kOwn, i) {
        uint which = own_first % 4u + i;
        precise float sum = (slab[sums_at][which] + slab[sums_at + 2u][which]) +
                            (slab[sums_at + 1u][which] + slab[sums_at + 3u][which]);
        products[i] = sum;
    }
}

// The maximum over the invocations of the pair.
float largest_of(float own_largest) {
    uint quads = 16u / kOwn, from = (group * kOwn + pair_number) * quads, i = t / kOwn;
    reduced[from + i / 4u][i % 4u] = own_largest;
    barrier();
    vec4 largest = reduced[from];
    EACH(quads - 1u, quad) largest = max(largest, reduced[from + 1u + quad]);
    return max(max(largest.x, largest.y), max(largest.z, largest.w));
}

// Writes the maximum of S and the sum of P of each pair. 16 invocations add up the lanes of all
// pairs; one invocation per pair adds its lanes.
void put_sums(Pair pair, float largest) {
    uint from = (group * kOwn + pair_number) * 4u;
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

// Adds P V of a position, of which the elements begin at quad `place` of the slab.
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

// Computes a chunk for rows [first, after). `cached` has the cache rows of its positions.
void attend(uint chunk, uint first, uint after) {
    // 1. S = Q K^T * scale, and its maximum.
    Pair pair = pair_at(chunk, first, after);
    float products[4];
    find_products(pair, products);
    precise float scaled[4];
    float largest = -kInfinity;
    EACH(kOwn, i) {
        scaled[i] = products[i] * p.scale;
        if (own_first + i < pair.sees.x || own_first + i >= pair.sees.y) scaled[i] = -kInfinity;
        largest = scaled[i] > largest ? scaled[i] : largest;  // never NaN
    }
    // 2. P = exp(S - maximum), to shared memory.
    largest = largest_of(largest);
    EACH(kOwn, i) {
        precise float below = scaled[i] - largest;
        queries[scores_at(own_first)][own_first % 4u + i] = exp_of(below);
    }
    // 3. P V. From a whole quad on, positions [from, to) are whole iterations; the others are added
    // one by one.
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
    // 4. The sum of P.
    put_sums(pair, largest);
}

// Computes a chunk for rows [first, last): for several rows where its positions lie in the slots of
// their numbers, else for one row. `within` is the range of positions that any of them attends to.
void attend_rows(uint chunk, uint first, uint last, Seen within) {
    uint before = chunk * 64u, pages_at = at[3] + uint(within.sequence) * p.pages_stride;
    uint begin = max(within.begin, before) - before;
    uint end = clamp(within.end, before, before + 64u) - before;
    if (begin >= end) return;
    barrier();  // the last item has been read
    if (thread < 64u) {  // beyond the range the nearest position in it: no read is out of bounds
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
    pair_number = t % kOwn;
    own_first = t / kOwn * kOwn;
    pair_row = (group * kOwn + pair_number) / p.own_heads;
    pair_head = (group * kOwn + pair_number) % p.own_heads;
    if (thread < p.own_rows) seen[thread] = seen_by(thread);
    barrier();
    // `any` is the range of positions that any of the rows attends to. Its chunks [begin, alike)
    // lie in the same slots for all rows; the others may not.
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
