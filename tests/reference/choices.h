// Choices from logits by enumeration in double precision: every token sorted, every filter in turn.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"

namespace aerie::reference {

// What a text has seen of a token.
struct Seen {
    bool in_prompt = false;
    int put_out = 0;
};
// Penalties for what was seen (empty: nothing) and the mask (empty: none); forbidden tokens become
// NaN. Penalties are float operations by definition.
std::vector<float> edited_logits(std::vector<float> logits, const Penalties& penalties,
                                 const std::vector<Seen>& seen, const std::vector<bool>& allowed);

// Processed probabilities; temperature 0: one at the argmax.
std::vector<double> probs(const std::vector<float>& edited, const Filters& filters);

// Lowest id of the greatest value; NaN below -inf; -1 if all are NaN.
int argmax(const std::vector<double>& values);

struct Ranked {
    int id;
    double log_prob;
};
// The k best tokens by log-softmax over the whole row.
std::vector<Ranked> top_k(const std::vector<float>& edited, int k);
// The k best by log p + noise; log-softmax of that over `softness`, over the max(k, 10) best.
std::vector<Ranked> top_k_noisy(const std::vector<double>& probs, const std::vector<float>& noise,
                                double softness, int k);

}  // namespace aerie::reference
