#version 450
// Rows of x times a weight of floats, or of a quantised type where FETCH_TOGETHER. An invocation has
// one output row and kColumns rows of x; kSplit invocations share a row of floats among them, and
// the order of its sum depends on kSplit alone. Quantised: groups are added one by one, and the
// sums of kSumGroups of them likewise (core/quant.h); matmul_parts.comp does the same on GPUs.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#if defined(FETCH_TOGETHER)
#extension GL_KHR_shader_subgroup_ballot : require
#endif
#include "lib/product.glsl"
#include "lib/dot.glsl"

layout(constant_id = 0) const uint kColumns = 1u;
layout(constant_id = 1) const uint kSplit = 1u;
#if defined(FETCH_TOGETHER)
// The invocations of a subgroup, so many, fetch x together and tell each other: for drivers where
// loads of one address by all are slow. Then kSplit is 1.
layout(constant_id = 2) const uint kLanes = 8u;
#endif
layout(local_size_x = 32, local_size_y_id = 1) in;

// Arrays have a fixed size: Metal knows none that a specialisation constant decides.
const uint kMostColumns = 8u, kMostSplit = 8u;
shared float shares[kMostColumns * kMostSplit * 32u];

// Columns whose sums an invocation ends with: its part and every kSplit-th from there.
const uint kOwnColumns = (kColumns + kSplit - 1u) / kSplit;

#if defined(FETCH_TOGETHER)
const uint kLeastLanes = 4u, kMostFetches = (kGroupX + kLeastLanes - 1u) / kLeastLanes;
const uint kFetches = (kGroupX + kLanes - 1u) / kLanes;

uint fetched[kMostColumns * kMostFetches];

// Before a group is multiplied; `last` is the last word of it that x has.
void fetch(uint group, uint last) {
    for (uint c = 0u; c < kColumns; ++c)
        for (uint f = 0u; f < kFetches; ++f)
            fetched[c * kFetches + f] = x[column_at(c) + group * kGroupX +
                                          min(f * kLanes + gl_SubgroupInvocationID, last)];
}

// Word i of what a group meets in a column.
uint word_of_x(uint c, uint group, uint i) {
    return subgroupBroadcast(fetched[c * kFetches + i / kLanes], i % kLanes);
}
#else
void fetch(uint group, uint last) {}

uint word_of_x(uint c, uint group, uint i) {
    return x[column_at(c) + group * kGroupX + i];
}
#endif

#if defined(QUANTISED)
PanelScales scales;  // of the newest panel

// term[c]: the product of a group, as it is added to the sum.
void multiply_group(inout precise float terms[kMostColumns], uint group, uint strip, uint lane) {
    fetch(group, kGroupX - 1u);
    uint panel = panel_of(strip, group), in_panel = group % kPanelGroups;
    Codes codes[kGroupQuads];
    [[unroll]] for (uint quad = 0u; quad < kGroupQuads; ++quad)
        codes[quad] = codes_of(panel, in_panel * kGroupQuads + quad, lane);
    if (in_panel == 0u) scales = panel_scales(panel, lane);
    ivec2 dots[kMostColumns];
    for (uint c = 0u; c < kColumns; ++c) dots[c] = ivec2(0);
    [[unroll]] for (uint i = 0u; i < kGroupQuads * kQuadSteps; ++i) {
        uint bytes = bytes_of(codes[i / kQuadSteps], i % kQuadSteps);
        for (uint c = 0u; c < kColumns; ++c)
            dots[c][kInHalves ? i / 4u : 0u] += dot_bytes(bytes, word_of_x(c, group, kStepWord + i));
    }
    ivec2 whole = whole_scales(scales, in_panel);
    vec2 steps = steps_of(scales, lane);
    for (uint c = 0u; c < kColumns; ++c)
        terms[c] = term_of(steps, whole, dots[c], word_of_x(c, group, 0u),
                           kUsesSums ? word_of_x(c, group, 1u) : 0u);
}
#else
void add_panel(inout precise float sums[kMostColumns], uint panel, uint strip, uint lane) {
    uvec4 words = weight[strip + panel * kPanelQuads + lane];
    uint count = min(kPanelElements, p.inner - panel * kPanelElements);
    fetch(panel, count - 1u);
    for (uint i = 0u; i < kPanelElements; ++i) {
        if (i >= count) break;
        float w = element(words, i);
        for (uint c = 0u; c < kColumns; ++c)
            sums[c] = sums[c] + w * uintBitsToFloat(word_of_x(c, panel, i));
    }
}
#endif

void main() {
    if (!begin_columns(kColumns)) return;
    uint lane = gl_LocalInvocationID.x, part = gl_LocalInvocationID.y;
    uint row = weight_row(lane);
    uint strip = weight_strip() * p.panels * kPanelQuads;
    precise float sums[kMostColumns];
    for (uint c = 0u; c < kColumns; ++c) sums[c] = 0.0;
#if defined(QUANTISED)
    precise float terms[kMostColumns], totals[kMostColumns];
    for (uint c = 0u; c < kColumns; ++c) totals[c] = 0.0;
    for (uint i = 0u; i < p.panels * kPanelGroups; ++i) {
        if (i % kSumGroups == 0u)
            for (uint c = 0u; c < kColumns; ++c) {
                totals[c] = totals[c] + sums[c];
                sums[c] = 0.0;
            }
        multiply_group(terms, i, strip, lane);
        for (uint c = 0u; c < kColumns; ++c) sums[c] = sums[c] + terms[c];
    }
    for (uint c = 0u; c < kColumns; ++c) sums[c] = totals[c] + sums[c];
#else
    // Parts take eight elements of k in turn, whatever the type.
    const uint step = 8u / kPanelElements;
    for (uint i = part * step; i < p.panels; i += kSplit * step)
        for (uint j = i; j < min(i + step, p.panels); ++j)
            add_panel(sums, j, strip, lane);
    if (kSplit > 1u) {
        for (uint c = 0u; c < kColumns; ++c) shares[(c * kSplit + part) * 32u + lane] = sums[c];
        barrier();
        for (uint own = 0u; own < kOwnColumns; ++own) {
            uint c = own * kSplit + part;
            if (c >= kColumns) break;
            sums[own] = shares[c * kSplit * 32u + lane];
            for (uint j = 1u; j < kSplit; ++j)
                sums[own] = sums[own] + shares[(c * kSplit + j) * 32u + lane];
        }
    }
#endif
    for (uint own = 0u; own < kOwnColumns; ++own)
        if (own * kSplit + part < kColumns) write_sum(row, own * kSplit + part, sums[own]);
}
