#version 450
// Finds the best experts of a row and their weights (op Route of backend/ops.h). One workgroup per
// row.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"
#include "lib/order.glsl"

layout(local_size_x = 64) in;
PARAMS(RouteParams);
WRITES(0, uint, ids);
WRITES(1, float, weights);
READS(2, float, logits);

const uint kMaxExperts = 1024u, kMaxChosen = 32u, kLanes = 16u;
shared uint keys[kMaxExperts];
shared uint chosen[kMaxChosen];
shared float lanes[kLanes];

// exp(logit - best): 1 for the best expert.
float mass_of(uint from, uint expert) {
    precise float distance = logits[from + expert] - logits[from + chosen[0]];
    return exp_of(distance);
}

void weigh(uint row, uint from) {
    precise float halves[kLanes / 2u];
    for (uint i = 0u; i < 8u; ++i) halves[i] = lanes[i] + lanes[i + 8u];
    for (uint i = 0u; i < 4u; ++i) halves[i] = halves[i] + halves[i + 4u];
    precise float all = (halves[0] + halves[2]) + (halves[1] + halves[3]);
    float share = reciprocal(all), values[kMaxChosen];
    precise float sum = 0.0;
    for (uint i = 0u; i < p.chosen; ++i) {
        precise float value = mass_of(from, chosen[i]) * share;
        values[i] = value;
        sum = sum + value;
    }
    float inverse = reciprocal(sum);
    for (uint i = 0u; i < p.chosen; ++i) {
        precise float part = values[i] * inverse;
        ids[at[0] + row * p.ids_stride + i] = chosen[i];
        weights[at[1] + row * p.weights_stride + i] = p.normalised != 0u ? part : values[i];
    }
}

void main() {
    uint t = gl_LocalInvocationID.x, row = gl_WorkGroupID.x;
    uint from = at[2] + row * p.logits_stride;
    for (uint e = t; e < p.experts; e += 64u) keys[e] = key_of(logits[from + e]);
    barrier();
    for (uint e = t; e < p.experts; e += 64u) {
        uint rank = 0u;
        for (uint other = 0u; other < p.experts; ++other)
            if (before(uvec2(keys[other], other), uvec2(keys[e], e))) ++rank;
        if (rank < p.chosen) chosen[rank] = e;
    }
    barrier();
    if (t < kLanes) {
        precise float sum = 0.0;
        for (uint e = t; e < p.experts; e += kLanes) sum = sum + mass_of(from, e);
        lanes[t] = sum;
    }
    barrier();
    if (t == 0u) weigh(row, from);
}
