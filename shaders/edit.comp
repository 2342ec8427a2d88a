#version 450
// Applies penalties and mask to rows of logits; forbidden tokens become NaN. A workgroup has a
// slice of a row. The few tokens of a drafted row's own path are penalised last.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/quotient.glsl"

layout(local_size_x = 256) in;
PARAMS(EditParams);
WRITES(0, uint, edited);  // [rows, vocab]
READS(1, uint, logits);
READS(2, uint, mask);
READS(3, int, seen);  // [sequences][target ids]
READS(4, int, id_map);
READS(5, uint, rules);
READS(6, int, rows);  // rows of the whole choice
#include "lib/row_fields.glsl"
#include "lib/rule_fields.glsl"

const uint kMaxPath = kRowWords - kRowPath;

shared uint words[kEditSlice];    // logits
shared uint path[kMaxPath];      // tokens of the row's path below the root, its own included

uint row_at, rule_at, seen_at;
uint first, count;  // tokens of the slice
uint path_count;

float rule_value(uint field) {
    return uintBitsToFloat(rules[rule_at + field]);
}

uint token_of(uint id) {
    return p.has_map != 0u ? uint(id_map[at[4] + id]) : id;
}

// `more`: how often the path has the token.
uint penalised(uint word, uint token, int more) {
    int times_seen = seen[seen_at + token] + 2 * more;
    if (times_seen == 0 || (word & 0x7fffffffu) > 0x7f800000u) return word;
    float logit = uintBitsToFloat(word), repetition = rule_value(kRuleRepetition);
    precise float scaled = logit * repetition;
    if (word != 0u && word < 0x80000000u) scaled = quotient(logit, repetition);
    precise float lost = 0.0;
    if (times_seen > 1) {
        precise float frequency = rule_value(kRuleFrequency) * float(times_seen / 2);
        lost = -(frequency + rule_value(kRulePresence));
    }
    precise float sum = scaled + lost;
    return floatBitsToUint(sum);
}

uint changed(uint id, int more) {
    uint word = logits[row_at + id], token = token_of(id);
    if (p.mask_stride != 0u) {
        uint allowed = mask[at[2] + gl_WorkGroupID.y * p.mask_stride + token / 32u];
        if ((allowed >> (token % 32u) & 1u) == 0u) return 0x7fc00000u;
    }
    return p.seen_stride != 0u ? penalised(word, token, more) : word;
}

// Loads the tokens of the row's path below the root, one per invocation.
void load_path(uint row) {
    path_count = 0u;
    if (p.has_rows == 0u) return;
    uint place = at[6] + row * kRowWords, i = gl_LocalInvocationID.x + 1u;
    int depth = rows[place + kRowPosition] - rows[place + kRowPrefix];
    path_count = uint(max(depth, 0));
    if (i > path_count) return;
    int back = i < path_count ? rows[place + kRowSlot] - rows[place + kRowPath + i] : 0;
    path[i - 1u] = uint(rows[place - uint(back) * kRowWords]);
}

void main() {
    uint row = gl_WorkGroupID.y, t = gl_LocalInvocationID.x;
    first = gl_WorkGroupID.x * kEditSlice;
    count = min(p.choice.vocab - first, kEditSlice);
    row_at = at[1] + row * p.choice.logits_stride;
    rule_at = at[5] + row * p.choice.rules_stride;
    if (p.seen_stride != 0u) seen_at = at[3] + rules[rule_at + kRuleSequence] * p.seen_stride;
    load_path(p.first_row + row);
    for (uint i = t; i < count; i += 256u) words[i] = changed(first + i, 0);
    barrier();
    if (t < path_count && path[t] - first < count) {
        int more = 0;
        for (uint i = 0u; i < path_count; ++i)
            if (path[i] == path[t]) ++more;
        words[path[t] - first] = changed(path[t], more);
    }
    barrier();
    for (uint i = t; i < count; i += 256u)
        edited[at[0] + row * p.choice.vocab + first + i] = words[i];
}
