// How the target chooses: filters, penalties and seed; and the penalties as edits of logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "draft/tree.h"

namespace aerie {

struct Penalties {
    float repetition =
        1;  // divides positive, multiplies negative logits of tokens seen in prompt or output
    float frequency = 0;  // subtracted once for each time that a token was put out
    float presence = 0;   // subtracted if a token was put out at all

    bool any() const { return repetition != 1 || frequency != 0 || presence != 0; }
};

struct Sampling {
    Filters filters;
    Penalties penalties;
    uint64_t seed = 0;
};

// Throws UsageError naming the value that is out of range.
void check_sampling(const Sampling& sampling);

// log_softmax(logits)[token]; NaN if one of the logits is NaN, or infinite and the best.
double log_probability(std::span<const float> logits, int token);

// Which tokens a text has seen, as far as penalties need to know.
class TokenHistory {
  public:
    void reset(const Penalties& penalties, int vocab);
    void add_prompt(std::span<const int> tokens);
    void add_output(int token);

    // Edits are good until the next call.
    // Those that hold for every row (row -1).
    std::span<const Edit> edits();
    // Those of each tree node on its own path: what is known so far (the root included), the
    // node and its ancestors.
    std::span<const Edit> edits(const TokenTree& tree);
    // Makes room for the edits of trees of `nodes` nodes until `more` further tokens were seen;
    // returns how many they can be.
    int reserve(int nodes, int more);

  private:
    void append(int row);
    void remove_output(int token);

    Penalties penalties_;
    std::vector<int> outputs_;  // per token: how often it was put out
    std::vector<int> seen_;     // per token: how often it stands in prompt and output
    std::vector<int> tokens_;   // those with seen_ > 0, in order of first appearance
    std::vector<Edit> edits_;
};

}  // namespace aerie
