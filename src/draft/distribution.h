// Distributions over tokens on the host, in double precision, and what speculative sampling does
// with them (Leviathan et al. 2023; Chen et al. 2023).
#pragma once

#include <span>
#include <vector>

#include "backend/choice.h"

namespace aerie {

// Only tokens that can be drawn.
struct Distribution {
    std::vector<int> ids;               // the target's, ascending
    std::vector<double> probabilities;  // of each; their sum is 1

    bool empty() const { return ids.empty(); }
    double of(int token) const;
    // The token's goes to the others as they have it; empty if there are none.
    void remove(int token);
};

// How tokens of a text are chosen, as its row of Rules says it to a device.
struct TextRule {
    RowChoice rule;
    std::span<const int32_t> seen = {};  // of each token, as kPutOut says; absent: no penalties
};

// What a device's Sample draws from this row, whose text has gone on with the tokens of `path`.
// target_ids: of each logit; absent: its number. Empty if all logits are NaN.
Distribution processed(std::span<const float> logits, const TextRule& rule,
                       std::span<const int> path, std::span<const int32_t> target_ids = {});

// max(0, p - q), normalised; empty if q is nowhere below p.
Distribution excess(const Distribution& p, const Distribution& q);

}  // namespace aerie
