// Choices from logits by enumeration in double precision: all tokens are sorted, and the filters
// are applied one after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"

namespace aerie::reference {

// Whether the prompt holds a token, and how often the token was generated.
struct Seen {
    bool in_prompt = false;
    int put_out = 0;
};
// Applies the penalties to tokens that occur (`seen`; may be empty) and the mask (`allowed`; empty:
// none). Forbidden tokens become NaN. Penalties are defined as float operations.
std::vector<float> edited_logits(std::vector<float> logits, const Penalties& penalties,
                                 const std::vector<Seen>& seen, const std::vector<bool>& allowed);

// Probabilities after temperature and filters. With temperature 0 the argmax has probability 1.
std::vector<double> probs(const std::vector<float>& edited, const Filters& filters);

// The lowest id of the greatest value. NaN ranks below -inf. Returns -1 if all values are NaN.
int argmax(const std::vector<double>& values);

struct Ranked {
    int id;
    double log_prob;
};
// The k best tokens by log-softmax over the whole row.
std::vector<Ranked> top_k(const std::vector<float>& edited, int k);
// The k best tokens by z = log p + noise. Their log-probabilities are the log-softmax of z /
// softness over the max(k, 10) best (docs/drafting.md section 10).
std::vector<Ranked> top_k_noisy(const std::vector<double>& probs, const std::vector<float>& noise,
                                double softness, int k);

}  // namespace aerie::reference
