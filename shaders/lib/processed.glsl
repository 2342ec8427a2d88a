// Processed logits: what the filters keep, (logit - best) / temperature, and noise. The including
// shader has a ChoiceParams `choice` in its push constants.
READS(1, uint, logits);
READS(2, uint, tops);  // [rows][2]: key and id of the best logit
READS(3, uint, cuts);  // [rows][kCutWords]: the smallest key that top-k and top-p keep
READS(4, float, noise);
READS(5, uint, rules);  // [rows or 1][kRuleWords]
#include "rule_fields.glsl"

const uint kIdBits = 22u, kLastId = (1u << kIdBits) - 1u;

uint row_at;    // the row's first word in `logits`
uvec2 row_top;  // key, id
float row_top_value;
uvec2 row_cut;
uint row_rule;    // the row's first word in `rules`
float row_scale;  // 1 / temperature; 0: argmax
bool row_limited, row_nucleus;
float row_cutoff_high, row_cutoff_low;

// The smallest key that min-p keeps: top + temperature * log(min_p), summed in two floats.
uint least_key(float top) {
    if (!(row_cutoff_high > -kInfinity)) return 1u;
    precise float sum = top + row_cutoff_high;
    precise float part = sum - top;
    precise float lost = (top - (sum - part)) + (row_cutoff_high - part);
    precise float rest = lost + row_cutoff_low;
    precise float least = sum + rest;
    precise float rest_part = least - sum;
    precise float rest_lost = (sum - (least - rest_part)) + (rest - rest_part);
    return key_of(least) + (rest_lost > 0.0 ? 1u : 0u);
}

// A float field of the row's rule.
float rule_value(uint field) {
    return uintBitsToFloat(rules[row_rule + field]);
}

// Reads the rule and the best token of a row. Returns false where there is no distribution: at
// temperature 0, or if the best logit is infinite or absent. Then the best token is taken.
bool begin_row(uint row) {
    row_scale = 0.0;
    if (p.choice.has_rules != 0u) {
        row_rule = at[5] + row * p.choice.rules_stride;
        row_scale = rule_value(kRuleScale);
        uint top_k = rules[row_rule + kRuleTopK];
        row_limited = top_k > 0u && top_k < p.choice.vocab;
        row_nucleus = rule_value(kRuleTopP) < 1.0;
        row_cutoff_high = rule_value(kRuleCutoffHigh);
        row_cutoff_low = rule_value(kRuleCutoffLow);
    }
    row_at = at[1] + row * p.choice.logits_stride;
    row_top = uvec2(tops[at[2] + row * 2u], tops[at[2] + row * 2u + 1u]);
    row_top_value = value_of(row_top.x);
    return row_scale != 0.0 && is_finite_key(row_top.x);
}

void begin_cut(uint row) {
    row_cut = uvec2(1u, 0u);
    if (row_limited || row_nucleus) {
        uint cut = at[3] + row * kCutWords;
        row_cut = uvec2(cuts[cut], cuts[cut + 1u]);
    }
    uint least = least_key(row_top_value);
    if (least > row_cut.x) row_cut = uvec2(least, 0u);
}

uint logit_key(uint id) {
    return key_of(uintBitsToFloat(logits[row_at + id]));
}

// Lower ids have higher keys.
uint id_key(uint id) {
    return kLastId - id;
}

bool kept(uint key, uint id) {
    return key > row_cut.x || (key == row_cut.x && id_key(id) >= row_cut.y);
}

// (logit - best) / temperature.
float weighed(uint key) {
    precise float z = (value_of(key) - row_top_value) * row_scale;
    return z;
}

// The key of weighed() plus noise; that of -inf if the filters drop the token. Without filters the
// key of NaN stays 0.
uint noisy_key(uint id, uint noise_at) {
    uint key = logit_key(id);
    bool filters = row_limited || row_nucleus || row_cutoff_high > -kInfinity;
    if (key == 0u) return filters ? kLowestKey : 0u;
    if (!kept(key, id)) return kLowestKey;
    precise float z = weighed(key) + noise[noise_at];
    return key_of(z);
}
