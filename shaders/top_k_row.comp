#version 450
// Finds the best tokens of a row among those of its slices, and their log-probabilities: by logit
// over all tokens, with noise over the best ones.
#extension GL_GOOGLE_include_directive : require
#include "lib/arithmetic.glsl"
#include "lib/fixed_point.glsl"
#include "lib/io.glsl"
#include "lib/order.glsl"
#include "lib/random.glsl"

layout(local_size_x = 256) in;
PARAMS(TopKParams);
WRITES(0, int, ids);
WRITES(1, float, log_probs);
READS(2, uint, partial);  // as top_k_slice.comp writes it
READS(3, uint, tops);
READS(4, int, id_map);
READS(5, uint, rules);
#include "lib/rule_fields.glsl"
#include "lib/best_of.glsl"

shared float log_total;  // the log of the sum of exp((value - best) / softness)

float inverse_softness;
uint from;  // where the row's part of `partial` begins

uvec2 item(uint i) {
    uint place = from + i / p.width * (2u * p.width + 2u) + i % p.width;
    return uvec2(partial[place], partial[place + p.width]);
}

float below_best(uint key) {
    precise float below = value_of(key) - value_of(best_items[0].x);
    return below;
}

float total_of_slices() {
    precise float total = 0.0;
    for (uint slice = 0u; slice < p.slices; ++slice) {
        uint place = from + slice * (2u * p.width + 2u);
        if (partial[place] <= kLowestKey) continue;
        float sum =
            float_of(uvec2(partial[place + 2u * p.width], partial[place + 2u * p.width + 1u]));
        total = total + sum * exp_of(below_best(partial[place]));
    }
    return total;
}

float total_of_best() {
    precise float total = 0.0;
    for (uint i = 0u; i < p.width && best_items[i].x > kLowestKey; ++i) {
        precise float scaled = below_best(best_items[i].x) * inverse_softness;
        total = total + exp_of(scaled);
    }
    return total;
}

void main() {
    uint t = gl_LocalInvocationID.x, row = gl_WorkGroupID.x;
    bool noisy = p.noisy != 0u && is_finite_key(tops[at[3] + row * 2u]);
    if (noisy) {
        uint rule = at[5] + row * p.choice.rules_stride;
        noisy = uintBitsToFloat(rules[rule + kRuleScale]) != 0.0;
        inverse_softness = uintBitsToFloat(rules[rule + kRuleInverseSoftness]);
    }
    from = at[2] + row * p.slices * (2u * p.width + 2u);
    find_best(p.width, p.slices * p.width);
    bool sound = is_finite_key(best_items[0].x);
    if (t == 0u && sound) log_total = log_positive(noisy ? total_of_best() : total_of_slices());
    barrier();
    if (t >= p.wanted) return;
    uvec2 item_of_rank = best_items[t];
    ids[at[0] + row * p.ids_stride + t] = p.has_map != 0u ? id_map[at[4] + item_of_rank.y] : int(item_of_rank.y);
    precise float below = below_best(item_of_rank.x);
    if (noisy) below = below * inverse_softness;
    precise float log_prob = below - log_total;
    if (!sound) log_prob = kNan;  // the best is infinite
    if (item_of_rank.x <= kLowestKey) log_prob = -kInfinity;
    log_probs[at[1] + row * p.log_probs_stride + t] = log_prob;
}
