// How the target chooses: filters, penalties and seed; and what penalties need to know of a text.
#pragma once

#include <cstdint>
#include <functional>
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

// Changes the logits of what may follow a text before anything else is done to them: -inf forbids a
// token. It must be a function of the text alone.
using LogitEdit = std::function<void(std::span<const int> text, std::span<float> logits)>;

struct TokenLogprob {
    int id = 0;
    float logprob = 0;  // of the model's own distribution, nothing done to it
};

// How an answer is chosen, and what is told of it.
struct AnswerOptions {
    AnswerOptions() = default;
    AnswerOptions(const Sampling& how) : sampling(how) {}

    Sampling sampling;
    bool drafts = true;          // else nothing is proposed: plain decoding
    bool with_logprobs = false;  // of each token
    int alternatives = 0;        // likeliest tokens in the place of each, told with logprobs
    LogitEdit edit_logits;       // may be empty
};

// Throws UsageError naming the value that is out of range.
void check_sampling(const Sampling& sampling);

// log_softmax(logits)[token]; NaN if one of the logits is NaN, or infinite and the best.
double log_probability(std::span<const float> logits, int token);

// The likeliest tokens, the best first; of equal ones the lowest id.
std::vector<TokenLogprob> likeliest(std::span<const float> logits, int count);

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
