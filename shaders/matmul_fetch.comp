#version 450
// Rows of x times a weight, for drivers that run shaders on a CPU and load an address that all
// invocations share once for each of them: those of a subgroup fetch x together and tell each
// other. An invocation has one output row, kColumns rows of x and the whole sum: of floats one by
// one, of a quantised type by groups, and the sums of kSumGroups of them likewise (core/quant.h).
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_ballot : require
layout(local_size_x = 32) in;
#include "lib/product.glsl"
#include "lib/dot.glsl"

layout(constant_id = 0) const uint kColumns = 1u;
layout(constant_id = 1) const uint kLanes = 8u;  // invocations of a subgroup, at most 32

const uint kMostColumns = 8u, kLeastLanes = 4u;
const uint kMostFetches = (kGroupX + kLeastLanes - 1u) / kLeastLanes;
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
uint word_of_x(uint c, uint i) {
    return subgroupBroadcast(fetched[c * kFetches + i / kLanes], i % kLanes);
}

#if defined(QUANTISED)
PanelScales scales;  // of the newest panel

// terms[c]: the product of a group, as it is added to the sum.
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
            dots[c][kInHalves ? i / 4u : 0u] += dot_bytes(bytes, word_of_x(c, kStepWord + i));
    }
    ivec2 whole = whole_scales(scales, in_panel);
    vec2 steps = steps_of(scales, lane);
    for (uint c = 0u; c < kColumns; ++c)
        terms[c] = term_of(steps, whole, dots[c], word_of_x(c, 0u),
                           kUsesSums ? word_of_x(c, 1u) : 0u);
}

void multiply(inout precise float sums[kMostColumns], uint strip, uint lane) {
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
}
#else
void multiply(inout precise float sums[kMostColumns], uint strip, uint lane) {
    for (uint panel = 0u; panel < p.panels; ++panel) {
        uint count = min(kPanelElements, p.inner - panel * kPanelElements);
        fetch(panel, count - 1u);
        for (uint i = 0u; i < count; ++i) {
            float w = element(float_quad(strip + panel * kPanelQuads, lane, i), i % kQuadElements);
            for (uint c = 0u; c < kColumns; ++c)
                sums[c] = sums[c] + w * uintBitsToFloat(word_of_x(c, i));
        }
    }
}
#endif

void main() {
    if (!begin_columns(kColumns)) return;
    uint lane = gl_LocalInvocationID.x;
    precise float sums[kMostColumns];
    for (uint c = 0u; c < kColumns; ++c) sums[c] = 0.0;
    multiply(sums, weight_strip(gl_WorkGroupID.y) * p.panels * kPanelQuads, lane);
    uint row = gl_WorkGroupID.y * kStripRows + lane;
    for (uint c = 0u; c < kColumns; ++c) write_sum(row, c, sums[c]);
}
