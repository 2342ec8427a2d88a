#version 450
// Finds the next digit of a row's cut, from the highest digit down: the digit at which the wanted
// number of tokens is reached, or the wanted mass. It leaves the histogram zero.
//
// The words of a cut: 0 and 1 are the key and the id key (see processed.glsl) of the last token
// that is kept, as far as they are known; 2 is whether they are final; 3 is the number and 4 (two
// words) the mass of tokens that are still wanted among those with these digits; 6 (two words) is
// the mass of the tokens before them, in the end of all that are kept.
#extension GL_GOOGLE_include_directive : require
#include "lib/arithmetic.glsl"
#include "lib/fixed_point.glsl"
#include "lib/io.glsl"
#include "lib/order.glsl"

layout(local_size_x = 256) in;
PARAMS(CutParams);
WRITES(0, uint, histogram);
WRITES(1, uint, cuts);
READS(2, uint, tops);
READS(3, uint, rules);
#include "lib/rule_fields.glsl"

const uint kOwn = kDigits / 256u;  // digits per invocation; invocation 0 has the highest

// The number of some tokens, and their mass.
struct Sum {
    uint count;
    uvec2 mass;
};

shared uint counts[256];
shared uvec2 masses[256];
shared uint group_counts[16];
shared uvec2 group_masses[16];
shared Sum passed;
shared Sum goal;
shared uint chosen;  // the invocation that has the digit

uint wanted;  // tokens to keep; 0: the goal is a mass
float share;  // part of the mass to keep: of what top-k kept, or of all
bool within_last;

// Whether the row has such a cut.
bool begin_row(uint row) {
    uint rule = at[3] + row * p.choice.rules_stride, top_k = rules[rule + kRuleTopK];
    if (uintBitsToFloat(rules[rule + kRuleScale]) == 0.0) return false;
    if (!is_finite_key(tops[at[2] + row * 2u])) return false;
    share = uintBitsToFloat(rules[rule + kRuleTopP]);
    within_last = top_k > 0u && top_k < p.choice.vocab;
    wanted = p.by_mass != 0u ? 0u : top_k;
    return p.by_mass != 0u ? share < 1.0 : within_last;
}

Sum add(Sum a, Sum b) {
    return Sum(a.count + b.count, sum_of(a.mass, b.mass));
}

// Whether these tokens reach the goal.
bool reached(Sum sum) {
    return wanted != 0u ? sum.count >= goal.count : at_least(sum.mass, goal.mass);
}

Sum of_digit(uint row, uint digit) {
    uint from = at[0] + row * 3u * kDigits + digit;
    return Sum(histogram[from], uvec2(histogram[from + kDigits], histogram[from + 2u * kDigits]));
}

uint first_digit(uint invocation) {
    return kDigits - 1u - invocation * kOwn;
}

void begin_search(uint cut) {
    if (p.level == 0u) {
        goal = Sum(wanted, uvec2(0u));
        if (wanted == 0u) {
            uvec2 whole = uvec2(cuts[cut + 6u], cuts[cut + 7u]);
            if (!within_last) {
                whole = uvec2(0u);
                for (uint i = 0u; i < 16u; ++i) whole = sum_of(whole, group_masses[i]);
            }
            goal.mass = share_of(whole, share);
        }
        return;
    }
    goal = Sum(cuts[cut + 3u], uvec2(cuts[cut + 4u], cuts[cut + 5u]));
}

void write_cut(uint cut, uvec2 key, bool is_all, Sum left, uvec2 mass) {
    cuts[cut] = key.x;
    cuts[cut + 1u] = key.y;
    cuts[cut + 2u] = is_all ? 1u : 0u;
    cuts[cut + 3u] = left.count;
    cuts[cut + 4u] = left.mass.x;
    cuts[cut + 5u] = left.mass.y;
    cuts[cut + 6u] = mass.x;
    cuts[cut + 7u] = mass.y;
}

// Sets `chosen` to the invocation with the digit where the goal is reached; to 256 if there are too
// few tokens. The search first goes by groups of 16 invocations, with the sums group_counts and
// group_masses.
void choose() {
    passed = Sum(0u, uvec2(0u));
    uint group = 0u;
    for (; group < 16u; ++group) {
        Sum next = add(passed, Sum(group_counts[group], group_masses[group]));
        if (reached(next)) break;
        passed = next;
    }
    chosen = 256u;
    for (uint i = group * 16u; i < min(group * 16u + 16u, 256u); ++i) {
        Sum next = add(passed, Sum(counts[i], masses[i]));
        if (reached(next)) {
            chosen = i;
            return;
        }
        passed = next;
    }
}

void descend(uint row, uint cut) {
    bool first = p.level == 0u;
    uvec2 mass = first ? uvec2(0u) : uvec2(cuts[cut + 6u], cuts[cut + 7u]);
    uvec2 key = first ? uvec2(0u) : uvec2(cuts[cut], cuts[cut + 1u]);
    for (uint digit = first_digit(chosen);; --digit) {
        Sum digit_sum = of_digit(row, digit), next = add(passed, digit_sum);
        if (!reached(next) && digit > 0u) {
            passed = next;
            continue;
        }
        bool is_all = digit_sum.count == 1u || (wanted != 0u && next.count == goal.count);
        if (p.level < 3u)
            key.x |= digit << (first ? 21u : p.level == 1u ? 10u : 0u);
        else
            key.y |= digit << (p.level == 3u ? 11u : 0u);
        Sum left = Sum(goal.count - passed.count, difference_of(goal.mass, passed.mass));
        write_cut(cut, key, is_all, left, sum_of(mass, is_all ? next.mass : passed.mass));
        return;
    }
}

void main() {
    uint t = gl_LocalInvocationID.x, row = gl_WorkGroupID.x, cut = at[1] + row * kCutWords;
    if (!begin_row(row)) return;
    if (p.level != 0u && cuts[cut + 2u] != 0u) return;
    Sum sum = Sum(0u, uvec2(0u));
    for (uint i = 0u; i < kOwn; ++i) sum = add(sum, of_digit(row, first_digit(t) - i));
    counts[t] = sum.count;
    masses[t] = sum.mass;
    barrier();
    if (t < 16u) {
        sum = Sum(0u, uvec2(0u));
        for (uint i = t * 16u; i < t * 16u + 16u; ++i) sum = add(sum, Sum(counts[i], masses[i]));
        group_counts[t] = sum.count;
        group_masses[t] = sum.mass;
    }
    barrier();
    if (t == 0u) {
        begin_search(cut);
        choose();
        if (chosen == 256u) write_cut(cut, uvec2(1u, 0u), true, passed, passed.mass);
    }
    barrier();
    if (t == chosen) descend(row, cut);
    uint first = at[0] + row * 3u * kDigits + first_digit(t);
    for (uint i = 0u; i < kOwn; ++i)
        histogram[first - i] = histogram[first - i + kDigits] =
            histogram[first - i + 2u * kDigits] = 0u;
}
