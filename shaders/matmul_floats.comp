#version 450
// x times a weight of floats. An invocation has one output row and kColumns rows of x. kSplit
// invocations share a row (split-K): they take its units of eight elements in turn. The order of
// the sum depends on kSplit and on nothing else.
//
// kTurns units are multiplied at a time, while the next ones are loaded. Their elements of x are
// the same for all output rows, so a workgroup loads them once, through shared memory.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#if defined(EXPERTS)
layout(local_size_x = 32, local_size_y_id = 1) in;
#else
layout(local_size_x_id = 3, local_size_y_id = 1) in;  // before any use of gl_WorkGroupSize
#endif
#define X_WORDS float
#include "lib/product.glsl"
#include "lib/result.glsl"
#if defined(NORMED)
#include "lib/norm_here.glsl"
#endif

layout(constant_id = 0) const uint kColumns = 1u;  // 1, 2, 4 or 8
layout(constant_id = 1) const uint kSplit = 1u;    // up to 8
layout(constant_id = 2) const uint kTurns = 8u;    // up to 16 / kColumns
// kColumns * kSplit * kLanes <= 2048

#define EACH(count, i) [[unroll]] for (uint i = 0u; i < count; ++i)

// Arrays have a fixed size: Metal knows none that a specialisation constant decides.
const uint kMaxColumns = 8u, kMaxSplit = 8u, kMaxTurns = 8u, kMaxItems = 16u;
const uint kOwnColumns = (kColumns + kSplit - 1u) / kSplit;  // columns that an invocation writes
const uint kUnit = 8u, kUnitQuads = kUnit / kQuadElements;

// An item is a unit of a column. The items of invocations that run side by side begin at different
// banks.
const uint kItems = kTurns * kColumns, kPartWords = kItems * kUnit + 4u;
const uint kMaxPartWords = kMaxItems * kUnit + 4u;
// Loads per invocation.
const uint kFetches = (kItems * kUnit + kLanes - 1u) / kLanes, kMaxFetches = 4u;
shared float staged[2u * kMaxSplit * kMaxPartWords];
shared float shares[kMaxColumns * kMaxSplit * 32u];

uint lane, part, strip, units;  // lane: below kLanes

// Loaded ahead.
uvec4 quads[kMaxTurns * kUnitQuads];
float elements[kMaxFetches], norm_weights[kMaxFetches];

// Units beyond the last one are copies of it, and are not added.
uint unit_at(uint first, uint turn) {
    return min(first + turn * kSplit, units - 1u);
}

void fetch(uint first) {
    EACH(kFetches, f) {
        uint i = min(f * kLanes + lane, kItems * kUnit - 1u), item = i / kUnit;
        uint k = unit_at(first, item / kColumns) * kUnit + i % kUnit, held = min(k, p.inner - 1u);
#if defined(NORMED)
        norm_weights[f] = norm_weight[at[9] + held];
#endif
        elements[f] = k < p.inner ? x[column_at(item % kColumns) + held] : 0.0;
    }
    EACH(kTurns, turn) EACH(kUnitQuads, quad) {
        uint k = unit_at(first, turn) * kUnit + quad * kQuadElements;
        quads[turn * kUnitQuads + quad] =
            float_quad(strip + k / kPanelElements * kPanelQuads, lane % 32u, k % kPanelElements);
    }
}

void put_elements(uint to) {
    EACH(kFetches, f) {
        float value = elements[f];
#if defined(NORMED)
        value = normed(value, norm_weights[f]);
#endif
        if (f * kLanes + lane < kItems * kUnit) staged[to + f * kLanes + lane] = value;
    }
}

void main() {
    if (!begin_columns(kColumns)) return;
    lane = gl_LocalInvocationID.x;
    part = gl_LocalInvocationID.y;
    uint number = strip_number(lane / 32u), row = number * kStripRows + lane % 32u;
    strip = weight_strip(number) * p.panels * kPanelQuads;
    units = (p.inner + kUnit - 1u) / kUnit;
    precise float sums[kMaxColumns];
    EACH(kColumns, c) sums[c] = 0.0;
    float held[kMaxColumns], more[kMaxColumns];
    EACH(kOwnColumns, i)
        ask_for(held[i], more[i], row, min(i * kSplit + part, kColumns - 1u));
    fetch(part);
#if defined(NORMED)
    norm_row();
#endif
    uint from = part * kPartWords;  // one of two places in turn
    for (uint i = 0u; i < units; i += kSplit * kTurns) {
        put_elements(from);
        uvec4 fetched[kMaxTurns * kUnitQuads] = quads;
        barrier();
        uint first = i + part;
        fetch(first + kSplit * kTurns);
        EACH(kTurns, turn) {
            precise float with[kMaxColumns];
            EACH(kColumns, c) with[c] = sums[c];
            EACH(kUnit, e) {
                float w = element(fetched[turn * kUnitQuads + e / kQuadElements], e % kQuadElements);
                EACH(kColumns, c)
                    with[c] = with[c] + w * staged[from + (turn * kColumns + c) * kUnit + e];
            }
            EACH(kColumns, c) sums[c] = first + turn * kSplit < units ? with[c] : sums[c];
        }
        from = kSplit * kPartWords + 2u * part * kPartWords - from;
    }
    EACH(kColumns, c) shares[(c * kSplit + part) * kLanes + lane] = sums[c];
    barrier();
    EACH(kOwnColumns, i) {
        uint c = i * kSplit + part;
        if (c >= kColumns) break;
        precise float sum = shares[c * kSplit * kLanes + lane];
        for (uint j = 1u; j < kSplit; ++j) sum = sum + shares[(c * kSplit + j) * kLanes + lane];
        put_result(row, c, lane, sum, held[i], more[i]);
    }
    finish_results(kColumns);
}
