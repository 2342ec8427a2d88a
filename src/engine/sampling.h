// How the target chooses: filters, penalties and seed; and the seen tokens that penalties need.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "core/fixed_vector.h"

namespace aerie {

class DraftWeights;

struct Sampling {
    Filters filters;
    Penalties penalties;
    uint64_t seed = 0;
};

// Changes the logits of the next token before any other processing; -inf forbids a token. It must
// be a function of the text alone.
using LogitEdit = std::function<void(std::span<const int> text, std::span<float> logits)>;

struct TokenLogprob {
    int id = 0;
    float logprob = 0;  // under the model's own distribution, unprocessed
};

// How the tokens of an answer are chosen, and what is reported with them.
struct AnswerOptions {
    AnswerOptions() = default;
    AnswerOptions(const Sampling& how) : sampling(how) {}

    Sampling sampling;
    bool drafts = true;          // false: nothing is proposed (plain decoding)
    bool with_logprobs = false;  // for each token
    int alternatives = 0;        // likeliest tokens reported for each place, with logprobs
    LogitEdit edit_logits;       // may be empty
    // The head that drafts (Drafter::use_head); null: the one that the drafter was made for.
    std::shared_ptr<const DraftWeights> head;
};

// Throws UsageError naming the value that is out of range.
void check_sampling(const Sampling& sampling);

// log_softmax(logits)[token]; NaN if a logit is NaN, or if the largest is infinite.
double log_probability(std::span<const float> logits, int token);

// The likeliest tokens, best first; ties go to the lowest id.
std::vector<TokenLogprob> likeliest(std::span<const float> logits, int count);

// The tokens that a sequence has seen, which its penalties need.
class SeenTokens {
  public:
    void reset(int vocab);
    void add(std::span<const int> tokens, bool are_output);
    // Updates a row of Rules::seen that was last written for this sequence, or is new.
    void write_to(Backend& be, Tensor row);
    std::span<const int32_t> words() const { return words_; }

  private:
    std::vector<int32_t> words_;  // one for each token, as on the device
    FixedVector<int32_t, 2 * kMaxDepth> changed_;
    bool all_changed_ = true;
};

}  // namespace aerie
