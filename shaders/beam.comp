#version 450
// One level of EAGLE-2's expansion (docs/drafting.md section 3): the table, the next frontier and
// its rows. One workgroup.
#extension GL_GOOGLE_include_directive : require
#include "lib/arithmetic.glsl"
#include "lib/io.glsl"
#include "lib/order.glsl"

layout(local_size_x = 256) in;
PARAMS(BeamParams);
WRITES(0, int, table);  // [capacity][4]: token, parent, value, log_prob
READS(1, int, ids);
READS(2, float, log_probs);
READS(3, int, rows);
WRITES(4, int, frontier);
READS(5, int, selection);
WRITES(6, int, parent_row);
WRITES(7, int, next);  // other memory than that of `rows`
#include "lib/best_of.glsl"
#include "lib/row_fields.glsl"

const uint kMaxCandidates = 2048u;

shared uint keys[kMaxCandidates];  // keys of this level's values

uvec2 item(uint i) {
    return uvec2(keys[i], i);
}

uint candidate_at(uint i) {
    return at[0] + (p.table_offset + i) * 4u;
}

void append_level() {
    for (uint i = gl_LocalInvocationID.x; i < p.rows * p.k; i += 256u) {
        uint f = i / p.k, to = candidate_at(i);
        int parent = p.from_root != 0u ? -1 : frontier[at[4] + f];
        float log_prob = log_probs[at[2] + f * p.log_probs_stride + i % p.k];
        precise float value = log_prob;
        if (parent >= 0 && p.sum_values != 0u)
            value = log_prob + intBitsToFloat(table[at[0] + uint(parent) * 4u + 2u]);
        table[to] = ids[at[1] + f * p.ids_stride + i % p.k];
        table[to + 1u] = parent;
        table[to + 2u] = floatBitsToInt(value);
        table[to + 3u] = floatBitsToInt(log_prob);
        keys[i] = key_of(value);
    }
}

uint chosen(uint i) {
    return p.has_selection != 0u ? uint(selection[at[5] + i]) : best_items[i].y;
}

// Word `field` of next row i, which extends its parent by a candidate.
int extended(uint i, uint field) {
    uint candidate = chosen(i), f = candidate / p.k, parent = at[3] + f * kRowWords;
    int position = rows[parent + kRowPosition] + 1;
    int prefix = p.from_root != 0u ? position : rows[parent + kRowPrefix];
    if (field == 0u) return ids[at[1] + f * p.ids_stride + candidate % p.k];
    if (field == kRowPosition) return position;
    if (field == kRowSlot) return prefix + int(p.next_slot + i);
    if (field == kRowPrefix) return prefix;
    bool own_slot = p.from_root == 0u && int(field - kRowPath) == position - 1 - prefix;
    return rows[parent + (own_slot && field >= kRowPath ? kRowSlot : field)];
}

void main() {
    uint t = gl_LocalInvocationID.x, words = p.width * kRowWords;
    append_level();
    if (p.width == 0u) return;
    barrier();
    if (p.has_selection == 0u) find_best(p.width, p.rows * p.k);
    for (uint i = t; i < words; i += 256u)
        next[at[7] + i] = extended(i / kRowWords, i % kRowWords);
    if (t >= p.width) return;
    parent_row[at[6] + t] = int(chosen(t) / p.k);
    frontier[at[4] + t] = int(p.table_offset + chosen(t));
}
