#version 450
// x times a weight, for drivers that run shaders on a CPU. There a load from an address that all
// invocations share costs a load for each of them, so the invocations of a subgroup load x together
// and broadcast it. A workgroup is a subgroup and has a strip. An invocation has kOwn output rows
// and kColumns rows of x, and whole sums: float weights are added element by element; quantised
// ones group by group, in parts of kSumGroups groups (core/quant.h).
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_ballot : require
layout(constant_id = 0) const uint kColumns = 1u;
layout(local_size_x_id = 1) in;  // 4 to 16
#include "lib/product.glsl"
#include "lib/dot.glsl"

#define EACH(count, i) [[unroll]] for (uint i = 0u; i < count; ++i)

const uint kLanes = gl_WorkGroupSize.x, kOwn = kStripRows / kLanes;  // kOwn: rows, kLanes apart
const uint kMaxColumns = 16u, kMinLanes = 4u, kMaxOwn = kStripRows / kMinLanes;
const uint kMaxSums = kMaxColumns * kMaxOwn;
const uint kMaxFetches = (kGroupX + kMinLanes - 1u) / kMinLanes;
const uint kFetches = (kGroupX + kLanes - 1u) / kLanes;

uint lane;
uint fetched[kMaxColumns * kMaxFetches];

// Loads x of a group, before the group is multiplied.
void fetch(uint group) {
    EACH(kColumns, c) EACH(kFetches, f) {
        uint word = min(f * kLanes + lane, kGroupX - 1u);
        fetched[c * kFetches + f] = x[column_at(c) + group * kGroupX + word];
    }
}

// Word i of the group of x in column c.
uint word_of_x(uint c, uint i) {
    return subgroupBroadcast(fetched[c * kFetches + i / kLanes], i % kLanes);
}

#if defined(QUANTISED)
PanelScales scales[kMaxOwn];  // scales of the newest panel

// Adds the terms of a group.
void multiply_group(inout precise float sums[kMaxSums], uint group, uint strip) {
    fetch(group);
    uint panel = panel_of(strip, group), in_panel = group % kPanelGroups;
    Codes codes[kMaxOwn * kGroupQuads];
    EACH(kOwn, r) EACH(kGroupQuads, quad)
        codes[r * kGroupQuads + quad] =
            codes_of(panel, in_panel * kGroupQuads + quad, r * kLanes + lane);
    if (in_panel == 0u) EACH(kOwn, r) scales[r] = panel_scales(panel, r * kLanes + lane);
    ivec2 dots[kMaxSums];
    EACH(kColumns * kOwn, i) dots[i] = ivec2(0);
    EACH(kGroupQuads * kQuadSteps, i) {
        EACH(kColumns, c) {
            uint word = word_of_x(c, kStepWord + i);
            EACH(kOwn, r)
                dots[c * kOwn + r][kInHalves ? i / 4u : 0u] +=
                    dot_bytes(bytes_of(codes[r * kGroupQuads + i / kQuadSteps], i % kQuadSteps), word);
        }
    }
    EACH(kOwn, r) {
        ivec2 whole = whole_scales(scales[r], in_panel);
        vec2 steps = scale_and_min(scales[r], lane);
        EACH(kColumns, c)
            sums[c * kOwn + r] = sums[c * kOwn + r] +
                                 term_of(steps, whole, dots[c * kOwn + r], word_of_x(c, 0u),
                                         kUsesSums ? word_of_x(c, 1u) : 0u);
    }
}

void multiply(inout precise float sums[kMaxSums], uint strip) {
    precise float totals[kMaxSums];
    EACH(kColumns * kOwn, i) totals[i] = 0.0;
    [[dont_unroll]] for (uint i = 0u; i < p.panels * kPanelGroups; ++i) {
        if (i % kSumGroups == 0u)
            EACH(kColumns * kOwn, j) {
                totals[j] = totals[j] + sums[j];
                sums[j] = 0.0;
            }
        multiply_group(sums, i, strip);
    }
    EACH(kColumns * kOwn, i) sums[i] = totals[i] + sums[i];
}
#else
void multiply(inout precise float sums[kMaxSums], uint strip) {
    uint whole = p.inner / kPanelElements;  // panels
    [[dont_unroll]] for (uint panel = 0u; panel < whole; ++panel) {
        fetch(panel);
        uvec4 words[kMaxOwn * kGroupQuads];
        EACH(kOwn, r) EACH(kGroupQuads, quad)
            words[r * kGroupQuads + quad] = float_quad(strip + panel * kPanelQuads,
                                                       r * kLanes + lane, quad * kQuadElements);
        EACH(kPanelElements, i) {
            float weights[kMaxOwn];
            EACH(kOwn, r)
                weights[r] = element(words[r * kGroupQuads + i / kQuadElements], i % kQuadElements);
            EACH(kColumns, c) {
                float one = uintBitsToFloat(word_of_x(c, i));
                EACH(kOwn, r) sums[c * kOwn + r] = sums[c * kOwn + r] + weights[r] * one;
            }
        }
    }
    // The part of a panel that is left: each invocation loads x for itself.
    [[dont_unroll]] for (uint i = 0u; i < p.inner % kPanelElements; ++i)
        EACH(kOwn, r) {
            float weight = element(float_quad(strip + whole * kPanelQuads, r * kLanes + lane, i),
                                i % kQuadElements);
            EACH(kColumns, c) {
                float one = uintBitsToFloat(x[column_at(c) + whole * kPanelElements + i]);
                sums[c * kOwn + r] = sums[c * kOwn + r] + weight * one;
            }
        }
}
#endif

void main() {
    lane = gl_LocalInvocationID.x;
    if (!begin_columns(kColumns)) return;
    precise float sums[kMaxSums];
    EACH(kColumns * kOwn, i) sums[i] = 0.0;
    multiply(sums, weight_strip(gl_WorkGroupID.y) * p.panels * kPanelQuads);
    EACH(kOwn, r) EACH(kColumns, c)
        write_sum(gl_WorkGroupID.y * kStripRows + r * kLanes + lane, c, sums[c * kOwn + r]);
}
