#version 450
// x times a quantised weight. An invocation has one output row, kColumns rows of x, and every
// kSplit-th part of the sum (core/quant.h). It adds the groups of a part in ascending order, and
// one invocation adds the parts in ascending order. So the bits depend neither on kColumns nor on
// kSplit.
//
// kTurns groups are multiplied at a time, while the next ones are loaded. Their elements of x are
// the same for all output rows, so a workgroup loads them once, or makes them (lib/norm_here.glsl).
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#if defined(EXPERTS)
layout(local_size_x = 32, local_size_y_id = 1) in;
#else
layout(local_size_x_id = 3, local_size_y_id = 1) in;  // before any use of gl_WorkGroupSize
#endif
#if defined(NORMED)
#define X_WORDS float
#else
#define X_WORDS uvec2
#endif
#include "lib/product.glsl"
#include "lib/dot.glsl"
#include "lib/result.glsl"
#if defined(NORMED)
#include "lib/norm_here.glsl"
#endif

layout(constant_id = 0) const uint kColumns = 1u;  // 1, 2, 4 or 8
layout(constant_id = 1) const uint kSplit = 1u;    // 1, 2 or 4
layout(constant_id = 2) const uint kTurns = 8u;    // 1, 2, 4 or 8, and at most 32 / kColumns
// kColumns * kSplit * kLanes <= 1024

#define EACH(count, i) [[unroll]] for (uint i = 0u; i < count; ++i)

// Arrays have a fixed size: Metal knows none that a specialisation constant decides.
const uint kMaxColumns = 8u, kMaxSplit = 4u, kMaxTurns = 8u, kMaxItems = 32u;
const uint kOwnColumns = (kColumns + kSplit - 1u) / kSplit;  // columns that an invocation writes

shared float part_sums[kMaxColumns * kMaxSplit * 32u];

uint lane, part, strip, groups;  // lane: below kLanes

// Loaded ahead. Groups of a panel share their scales.
const uint kScales = kPanelGroups > 1u ? 1u : kTurns;
Codes codes[kMaxTurns * kGroupQuads];
PanelScales scales[kMaxTurns];

// Groups beyond the last one are copies of it, and are not added.
uint group_at(uint first, uint turn) {
    return min(first + turn, groups - 1u);
}

#if defined(NORMED)
// norm_row() has put the whole row into shared memory.
void place_x() {}
void fetch_x(uint first) {}
void put_x() {}
void next_x() {}
void end_round() {
    barrier();
}

uint word_of_x(uint first, uint turn, uint c, uint i) {
    return groups_of_x[group_at(first, turn) * kGroupX + i];
}
#else
// An item is a group of a column: its scale and sums, then its quantised values, at a multiple of
// 16 bytes. The items of invocations that run side by side begin at different banks.
const uint kPairs = kGroupX / 2u, kItemPairs = 6u, kItems = kTurns * kColumns;
const uint kPartPairs = kItems * kItemPairs + 2u, kMaxPartPairs = kMaxItems * kItemPairs + 2u;
// Loads per invocation.
const uint kFetches = (kItems * kPairs + kLanes - 1u) / kLanes, kMaxFetches = 5u;
shared uvec2 staged[2u * kMaxSplit * kMaxPartPairs];

uvec2 pairs[kMaxFetches];
uint pair_at[kMaxFetches], pair_turn[kMaxFetches];  // where the pairs lie in x, without the group
uint from;                                            // one of two places in turn

void place_x() {
    EACH(kFetches, f) {
        uint i = min(f * kLanes + lane, kItems * kPairs - 1u), item = i / kPairs;
        pair_turn[f] = item / kColumns;
        pair_at[f] = column_at(item % kColumns) / 2u + i % kPairs;
    }
    from = part * kPartPairs;
}

void fetch_x(uint first) {
    EACH(kFetches, f) pairs[f] = x[pair_at[f] + group_at(first, pair_turn[f]) * kPairs];
}

void put_x() {
    EACH(kFetches, f) {
        uint i = f * kLanes + lane, pair = i % kPairs;
        if (i < kItems * kPairs)
            staged[from + i / kPairs * kItemPairs + pair + min(pair, 1u)] = pairs[f];
    }
    barrier();
}

void next_x() {
    from = kSplit * kPartPairs + 2u * part * kPartPairs - from;
}

// Nothing reads part_sums any more: the barrier of put_x() came after the last read.
void end_round() {}

// Word i of a group of x: its scale, its sums, its quantised values.
uint word_of_x(uint first, uint turn, uint c, uint i) {
    uint pair = i / 2u;
    return staged[from + (turn * kColumns + c) * kItemPairs + pair + min(pair, 1u)][i % 2u];
}
#endif

void fetch(uint first) {
    fetch_x(first);
    EACH(kScales, turn) scales[turn] = panel_scales(panel_of(strip, group_at(first, turn)), lane % 32u);
    EACH(kTurns, turn) {
        uint group = group_at(first, turn), panel = panel_of(strip, group);
        EACH(kGroupQuads, quad)
            codes[turn * kGroupQuads + quad] =
                codes_of(panel, group % kPanelGroups * kGroupQuads + quad, lane % 32u);
    }
}

void main() {
    if (!begin_columns(kColumns)) return;
    lane = gl_LocalInvocationID.x;
    part = gl_LocalInvocationID.y;
    uint number = strip_number(lane / 32u), row = number * kStripRows + lane % 32u;
    strip = weight_strip(number) * p.panels * kPanelQuads;
    groups = p.panels * kPanelGroups;
    place_x();
    precise float totals[kMaxColumns];
    float held[kMaxColumns], more[kMaxColumns];
    EACH(kOwnColumns, i) {
        totals[i] = 0.0;
        ask_for(held[i], more[i], row, min(i * kSplit + part, kColumns - 1u));
    }
    const uint round_groups = kSplit * kSumGroups;
    fetch(part * kSumGroups);
#if defined(NORMED)
    norm_row();
#endif
    for (uint round = 0u; round < groups; round += round_groups) {
        uint begin = round + part * kSumGroups, count = min(kSumGroups, groups - round);
        precise float sums[kMaxColumns];
        EACH(kColumns, c) sums[c] = 0.0;
        for (uint done = 0u; done < count; done += kTurns) {
            put_x();
            Codes own_codes[kMaxTurns * kGroupQuads] = codes;
            PanelScales own_scales[kMaxTurns] = scales;
            uint first = begin + done;
            fetch(done + kTurns < count ? first + kTurns : begin + round_groups);
            EACH(kTurns, turn) {
                ivec2 dots[kMaxColumns];
                EACH(kColumns, c) dots[c] = ivec2(0);
                EACH(kGroupQuads * kQuadSteps, i) {
                    uint bytes = bytes_of(own_codes[turn * kGroupQuads + i / kQuadSteps], i % kQuadSteps);
                    EACH(kColumns, c)
                        dots[c][kInHalves ? i / 4u : 0u] +=
                            dot_bytes(bytes, word_of_x(first, turn, c, kStepWord + i));
                }
                PanelScales of_panel = own_scales[min(turn, kScales - 1u)];
                ivec2 whole = whole_scales(of_panel, group_at(first, turn) % kPanelGroups);
                vec2 steps = scale_and_min(of_panel, lane % 32u);
                EACH(kColumns, c) {
                    precise float more =
                        sums[c] + term_of(steps, whole, dots[c], word_of_x(first, turn, c, 0u),
                                          word_of_x(first, turn, c, 1u));
                    sums[c] = first + turn < groups ? more : sums[c];
                }
            }
            next_x();
        }
        end_round();
        EACH(kColumns, c) part_sums[(c * kSplit + part) * kLanes + lane] = sums[c];
        barrier();
        uint parts = min(kSplit, (groups - round + kSumGroups - 1u) / kSumGroups);
        for (uint j = 0u; j < parts; ++j)
            EACH(kOwnColumns, i) {
                uint c = min(i * kSplit + part, kColumns - 1u);
                totals[i] = totals[i] + part_sums[(c * kSplit + j) * kLanes + lane];
            }
    }
    EACH(kOwnColumns, i)
        if (i * kSplit + part < kColumns)
            put_result(row, i * kSplit + part, lane, totals[i], held[i], more[i]);
    finish_results(kColumns);
}
