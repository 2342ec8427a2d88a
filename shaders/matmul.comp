#version 450
// Rows of x times a weight. An invocation has one output row and kColumns rows of x; kSplit
// invocations share the panels of a strip among them. The order of the sum over k depends on
// kSplit alone where the weight has floats, and on nothing where it is quantised: products of
// groups are added one by one, and the sums of kSumPanels of them likewise (core/quant.h).
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
const uint kLeastLanes = 4u, kMostFetches = (kPanelX + kLeastLanes - 1u) / kLeastLanes;
const uint kFetches = (kPanelX + kLanes - 1u) / kLanes;

uint fetched[kMostColumns * kMostFetches];

// Before a panel is multiplied; `last` is the last word of it that x has.
void fetch(uint panel_index, uint last) {
    for (uint c = 0u; c < kColumns; ++c)
        for (uint f = 0u; f < kFetches; ++f)
            fetched[c * kFetches + f] = x[column_at(c) + panel_index * kPanelX +
                                          min(f * kLanes + gl_SubgroupInvocationID, last)];
}

// Word i of what a panel meets in a column.
uint word_of_x(uint c, uint panel_index, uint i) {
    return subgroupBroadcast(fetched[c * kFetches + i / kLanes], i % kLanes);
}
#else
void fetch(uint panel_index, uint last) {}

uint word_of_x(uint c, uint panel_index, uint i) {
    return x[column_at(c) + panel_index * kPanelX + i];
}
#endif

#if defined(QUANTISED)
// terms[c]: the product of one group, as it is added to the sum.
void multiply_panel(inout precise float terms[kMostColumns], uint panel_index, uint panel, uint lane) {
    fetch(panel_index, kPanelX - 1u);
    int dots[kMostColumns];
    for (uint c = 0u; c < kColumns; ++c) dots[c] = 0;
    for (uint quad = 0u; quad < kPanelQuads; ++quad) {
        uvec4 words = weight[panel + quad * kStripRows + lane];
        for (uint j = 0u; j < 4u; ++j) {
            for (uint c = 0u; c < kColumns; ++c) {
#if defined(Q8_0)
                dots[c] += dot_bytes(words[j], word_of_x(c, panel_index, kStepWord + quad * 4u + j));
#else
                dots[c] += dot_bytes(low_bytes(words[j]), word_of_x(c, panel_index, kStepWord + j)) +
                           dot_bytes(low_bytes(words[j] >> 4), word_of_x(c, panel_index, kStepWord + 4u + j));
#endif
            }
        }
    }
    float scale = scale_of(panel, lane);
    for (uint c = 0u; c < kColumns; ++c) {
        precise float both = scale * uintBitsToFloat(word_of_x(c, panel_index, 0u));
        terms[c] = float(dots[c]) * both;
    }
}

// The sums of `count` columns come to the totals, and begin anew.
void add_up(inout precise float totals[kMostColumns], inout precise float sums[kMostColumns],
            uint count) {
    for (uint c = 0u; c < count; ++c) {
        totals[c] = totals[c] + sums[c];
        sums[c] = 0.0;
    }
}
#else
float element(uvec4 words, uint i) {
#if defined(F32)
    return uintBitsToFloat(words[i]);
#elif defined(F16)
    return half_value(words[i / 2u] >> (i % 2u * 16u) & 0xffffu);
#else
    return uintBitsToFloat(words[i / 2u] >> (i % 2u * 16u) << 16);
#endif
}

void add_panel(inout precise float sums[kMostColumns], uint panel_index, uint panel, uint lane) {
    uvec4 words = weight[panel + lane];
    uint count = min(kPanelElements, p.inner - panel_index * kPanelElements);
    fetch(panel_index, count - 1u);
    for (uint i = 0u; i < kPanelElements; ++i) {
        if (i >= count) break;
        float w = element(words, i);
        for (uint c = 0u; c < kColumns; ++c)
            sums[c] = sums[c] + w * uintBitsToFloat(word_of_x(c, panel_index, i));
    }
}
#endif

void main() {
    if (!begin_columns(kColumns)) return;
    uint lane = gl_LocalInvocationID.x, part = gl_LocalInvocationID.y;
    uint row = gl_WorkGroupID.x * kStripRows + lane, panels = panel_quads();
    uint first_panel = weight_strip() * p.panels * panels;
    precise float sums[kMostColumns];
    for (uint c = 0u; c < kColumns; ++c) sums[c] = 0.0;
#if defined(QUANTISED)
    precise float terms[kMostColumns], totals[kMostColumns];
    for (uint c = 0u; c < kColumns; ++c) totals[c] = 0.0;
    if (kSplit == 1u) {
        for (uint i = 0u; i < p.panels; ++i) {
            if (i % kSumPanels == 0u) add_up(totals, sums, kColumns);
            multiply_panel(terms, i, first_panel + i * panels, lane);
            for (uint c = 0u; c < kColumns; ++c) sums[c] = sums[c] + terms[c];
        }
    } else {
        // Each part has a panel at a time; one adds their terms in the order of the panels. Terms
        // of panels beyond the end are left out of the sum.
        for (uint i = 0u; i < p.panels; i += kSplit) {
            if (i % kSumPanels == 0u) add_up(totals, sums, kOwnColumns);
            if (i + part < p.panels) {
                multiply_panel(terms, i + part, first_panel + (i + part) * panels, lane);
                for (uint c = 0u; c < kColumns; ++c)
                    shares[(c * kSplit + part) * 32u + lane] = terms[c];
            }
            barrier();
            for (uint own = 0u; own < kOwnColumns; ++own) {
                uint c = own * kSplit + part;
                if (c >= kColumns) break;
                [[dont_unroll]]  // it would cost registers, and most of the time goes elsewhere
                for (uint j = 0u; j < min(kSplit, p.panels - i); ++j)
                    sums[own] = sums[own] + shares[(c * kSplit + j) * 32u + lane];
            }
            barrier();
        }
    }
    add_up(sums, totals, kOwnColumns);
#else
    // Parts take eight elements of k in turn, whatever the type.
    const uint step = 8u / kPanelElements;
    for (uint i = part * step; i < p.panels; i += kSplit * step)
        for (uint j = i; j < min(i + step, p.panels); ++j)
            add_panel(sums, j, first_panel + j * panels, lane);
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
