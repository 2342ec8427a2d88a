// Distributions over tokens on the host, in double precision, and the operations of speculative
// sampling on them (Leviathan et al. 2023; Chen et al. 2023).
#pragma once

#include <span>
#include <vector>

#include "backend/choice.h"

namespace aerie {

// Holds only tokens that can be drawn.
struct Distribution {
    std::vector<int> ids;               // target ids, ascending
    std::vector<double> probabilities;  // one for each id; their sum is 1

    bool empty() const { return ids.empty(); }
    double of(int token) const;  // the token's probability; 0 if it cannot be drawn
    // Removes the token and normalises the others; empty if no other is left.
    void remove(int token);
};

// How tokens of a sequence are chosen, as its row of Rules tells a device.
struct TextRule {
    RowChoice rule;
    std::span<const int32_t> seen = {};  // a word for each token (kPutOut); absent: no penalties
};

// The distribution that a device's Sample draws from, given this row of logits and the tokens of
// `path`, by which the sequence has gone on. target_ids: one for each logit; absent: a logit's
// number is its id. Empty if all logits are NaN.
Distribution processed(std::span<const float> logits, const TextRule& rule,
                       std::span<const int> path, std::span<const int32_t> target_ids = {});

// max(0, p - q), normalised; empty if p exceeds q nowhere.
Distribution excess(const Distribution& p, const Distribution& q);

}  // namespace aerie
