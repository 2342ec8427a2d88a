// How the target chooses: filters, penalties and seed; and what penalties need to know of a text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "core/fixed_vector.h"

namespace aerie {

struct Sampling {
    Filters filters;
    Penalties penalties;
    uint64_t seed = 0;
};

// Throws UsageError naming the value that is out of range.
void check_sampling(const Sampling& sampling);

// log_softmax(logits)[token]; NaN if one of the logits is NaN, or infinite and the best.
double log_probability(std::span<const float> logits, int token);

// What a text has seen of each token, for its penalties.
class SeenTokens {
  public:
    void reset(int vocab);
    void add(std::span<const int> tokens, bool are_output);
    // Brings a row of Rules::seen up to date that was written for this text before, or is new.
    void write_to(Backend& be, Tensor row);
    std::span<const int32_t> words() const { return words_; }

  private:
    std::vector<int32_t> words_;  // of each token, as the device has them
    FixedVector<int32_t, 2 * kMaxDepth> changed_;
    bool all_changed_ = true;
};

}  // namespace aerie
