// Learns from the target's choices how far the confidence of coupled proposals can be trusted
// (docs/drafting.md section 10).
#pragma once

#include <array>
#include <span>
#include <vector>

#include "draft/drafter.h"

namespace aerie {

// The softness for one sequence. A candidate's confidence is the softmax, over its siblings, of
// their values divided by the softness. Several softness values are compared by the log-loss that
// each would have had.
class LearnedSoftness {
  public:
    // Begins a new sequence. A draft has at most `candidates` candidates.
    void begin(int candidates);
    // The softness for the next draft, at the target's temperature, which must not be 0.
    float value(float temperature) const;
    // Records the candidates of a draft. Their log-probabilities were made with that softness.
    void ranked(std::span<const Candidate> table);
    // Learns from the result of that draft.
    void learn(const Verified& verified);

    // Log-losses of all candidates below accepted tokens: with the softness in use at the time, and
    // with the initial one.
    struct Losses {
        double learned = 0, first = 0;
        int candidates = 0;
    };
    const Losses& losses() const { return total_; }

    void save(SaveSink& to) const;
    void load(SaveSource& from);  // throws Error

  private:
    static constexpr int kValues = 21, kFirst = kValues / 2;

    void judge(std::span<const Candidate> siblings, int token);

    std::array<double, kValues> loss_ = {};
    int in_use_ = kFirst;
    std::vector<Candidate> table_;  // candidates of the newest draft; empty: nothing to learn from
    Losses total_;
};

}  // namespace aerie
