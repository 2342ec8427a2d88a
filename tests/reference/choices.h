// Choices from logits by enumeration in double precision: every token sorted, every filter in turn.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"

namespace aerie::reference {

// Edits of this row (or of all rows) and the mask (empty: none); forbidden tokens become NaN. Edits
// are float operations by definition.
std::vector<float> edited_logits(std::vector<float> logits, int row, const std::vector<Edit>& edits,
                                 const std::vector<bool>& allowed);

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
