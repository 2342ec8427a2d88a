#version 450
// attention.comp for drivers that run shaders on a CPU, where shared memory and loads of scattered
// words cost much. A workgroup is a subgroup. Every invocation has a row and a query head, all of
// them of one kv head, and computes this pair alone. K and V that all rows have in the same slots
// are loaded together, a word per invocation, and broadcast; each invocation loads the others for
// itself.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_ballot : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"
#include "lib/half.glsl"

layout(constant_id = 0) const bool kHalfCache = true;
layout(constant_id = 1) const uint kHeadDim = 64u;  // at most kMaxDim
layout(local_size_x_id = 2) in;                     // the size of a subgroup
PARAMS(AttentionParams);
WRITES(0, float, partial);
READS(1, float, qkv);
READS(2, int, rows);
READS(3, int, pages);
READS(4, uint, k_cache);
READS(5, uint, v_cache);
#include "lib/rows.glsl"
#include "lib/partial.glsl"

#define EACH(count, i) [[unroll]] for (uint i = 0u; i < count; ++i)
#include "lib/attended.glsl"

const uint kMaxDim = 256u, kMixed = 16u;  // kMixed: elements of V at a time
const uint kLanes = gl_WorkGroupSize.x, kInWord = kHalfCache ? 2u : 1u;
// Elements of K in an unrolled loop: drivers take tens of seconds to compile all 256.
const uint kBlock = kHeadDim % 64u == 0u ? 64u : kHeadDim;

uint lane;
uint row, head;        // the pair of this invocation
uint place, pages_at;  // where its row and its page table begin
uint column;           // words before its kv head in a cache row
float query[kMaxDim];
float scores[64];  // S of a chunk, then P

// The minimum and the maximum over all invocations.
uint least(uint value) {
    uint all = value;
    EACH(kLanes, i) all = min(all, subgroupBroadcast(value, i));
    return all;
}
uint most(uint value) {
    return ~least(~value);
}

vec2 elements_of(uint word) {
    if (!kHalfCache) return vec2(uintBitsToFloat(word));
    return vec2(half_value(word & 0xffffu), half_value(word >> 16));
}

// Element i of a block of K, or of `count` elements of V, which begins at word `from`. Calls come
// with i = 0, 1, ... in turn, since `held` keeps the newest words.
vec2 held;
float key(uint from, uint i, bool together) {
    uint word = i / kInWord, last = kBlock / kInWord - 1u;
    if (together && i % (kLanes * kInWord) == 0u) held = elements_of(k_cache[from + min(word + lane, last)]);
    if (!together && i % kInWord == 0u) held = elements_of(k_cache[from + word]);
    float element = held[i % kInWord];
    return together ? subgroupBroadcast(element, word % kLanes) : element;
}
float value(uint from, uint i, uint count, bool together) {
    uint word = i / kInWord, last = count / kInWord - 1u;
    if (together && i % (kLanes * kInWord) == 0u) held = elements_of(v_cache[from + min(word + lane, last)]);
    if (!together && i % kInWord == 0u) held = elements_of(v_cache[from + word]);
    float element = held[i % kInWord];
    return together ? subgroupBroadcast(element, word % kLanes) : element;
}

void multiply(inout precise float lanes[16], uint from, uint first, bool together) {
    from += first / kInWord;
    EACH(kBlock, i) lanes[i % 16u] = lanes[i % 16u] + key(from, i, together) * query[first + i];
}

float score(uint cached, bool together) {
    uint from = at[4] + cached * p.k_stride + column;
    precise float lanes[16];
    EACH(16u, i) lanes[i] = 0.0;
    multiply(lanes, from, 0u, together);
    [[dont_unroll]] for (uint first = kBlock; first < kHeadDim; first += kBlock)
        multiply(lanes, from, first, together);
    precise float scaled = sum_of_lanes(lanes) * p.scale;
    return scaled;
}

void mix(inout precise float mixed[kMixed], uint first, uint cached, float weight, bool together) {
    uint from = at[5] + cached * p.v_stride + column + first / kInWord;
    EACH(kMixed, i) mixed[i] = mixed[i] + weight * value(from, i, kMixed, together);
}

// Computes a chunk, of which this invocation's row attends to positions [from, to).
void attend(uint chunk, uint from, uint to, uint plain) {
    bool sees = from < to;
    uint before = chunk * 64u, page = sees ? uint(pages[pages_at + chunk]) * 64u : 0u;
    uint begin = least(sees ? from : 64u), end = most(to);
    // Positions [shared_from, shared_to) lie in the same slots for all rows that attend to any of
    // the chunk; `others` is the number of the positions around them.
    uint shared_page = most(page);
    uint shared_from = most(from), shared_to = least(sees ? min(to, plain) : 64u);
    if (least(sees ? page : shared_page) != shared_page || shared_from >= shared_to)
        shared_from = shared_to = end;
    uint others = end - begin - (shared_to - shared_from);

    float largest = -kInfinity;
    // 1. S = Q K^T * scale, and its maximum.
    EACH(64u, i) scores[i] = -kInfinity;
    [[dont_unroll]] for (uint i = shared_from; i < shared_to; ++i) {
        float s = score(shared_page + i, true);
        largest = s > largest ? s : largest;
        scores[i] = s;
    }
    [[dont_unroll]] for (uint j = 0u; j < others; ++j) {
        uint i = begin + j < shared_from ? begin + j : begin + j + shared_to - shared_from;
        if (i >= from && i < to) {
            float s = score(cache_row(pages_at, slot_of(place, before + i)), false);
            largest = s > largest ? s : largest;
            scores[i] = s;
        }
    }
    // 2. P = exp(S - maximum), and its sum.
    precise float sums[16];
    EACH(16u, i) sums[i] = 0.0;
    EACH(64u, i) {
        precise float below = scores[i] - largest;
        scores[i] = exp_of(below);
        sums[i % 16u] = sums[i % 16u] + scores[i];
    }
    uint put = at[0] + partial_place(row, head, chunk - first_seen(place) / 64u);
    if (sees) {
        partial[put] = largest;
        partial[put + 1u] = sum_of_lanes(sums);
    }
    // 3. P V, kMixed elements at a time.
    [[dont_unroll]] for (uint first = 0u; first < kHeadDim; first += kMixed) {
        precise float mixed[kMixed];
        EACH(kMixed, i) mixed[i] = 0.0;
        [[dont_unroll]] for (uint i = begin; i < shared_from; ++i)
            if (i >= from && i < to)
                mix(mixed, first, cache_row(pages_at, slot_of(place, before + i)), scores[i], false);
        [[dont_unroll]] for (uint i = shared_from; i < shared_to; ++i)
            mix(mixed, first, shared_page + i, scores[i], true);
        [[dont_unroll]] for (uint i = shared_to; i < end; ++i)
            if (i >= from && i < to)
                mix(mixed, first, cache_row(pages_at, slot_of(place, before + i)), scores[i], false);
        if (sees) EACH(kMixed, i) partial[put + 2u + first + i] = mixed[i];
    }
}

void main() {
    lane = gl_LocalInvocationID.x;
    uint own_row = lane / p.own_heads, first_head = gl_WorkGroupID.x * p.own_heads;
    row = gl_WorkGroupID.y * p.own_rows + own_row;
    head = first_head + lane % p.own_heads;
    bool is_any = own_row < p.own_rows && row < p.rows;
    row = min(row, p.rows - 1u);
    place = at[2] + (p.first_row + row) * kRowWords;
    is_any = is_any && rows[place + kRowSlot] >= 0;
    column = first_head / p.group * kHeadDim / kInWord;
    pages_at = at[3] + uint(rows[place + kRowSequence]) * p.pages_stride;
    uint from = at[1] + (p.first_row + row) * p.qkv_stride + head * kHeadDim;
    [[dont_unroll]] for (uint i = 0u; i < kHeadDim; ++i) query[i] = qkv[from + i];

    // The row attends to positions [begin, end); those below `plain` lie in the slots of the same
    // numbers.
    uint position = uint(rows[place + kRowPosition]), prefix = uint(rows[place + kRowPrefix]);
    bool is_plain = prefix == position && uint(rows[place + kRowSlot]) == position;
    uint begin = is_any ? first_seen(place) : 0u, end = is_any ? position + 1u : 0u;
    uint plain = is_plain ? end : prefix;
    uint last = most(end);
    [[dont_unroll]] for (uint chunk = least(is_any ? begin : last) / 64u + gl_WorkGroupID.z;
                         chunk * 64u < last; chunk += gl_NumWorkGroups.z) {
        uvec3 within = clamp(uvec3(begin, end, plain), chunk * 64u, chunk * 64u + 64u) - chunk * 64u;
        bool sees = within.x < within.y;
        attend(chunk, sees ? within.x : 0u, sees ? within.y : 0u, within.z);
    }
}
