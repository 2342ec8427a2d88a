// How far the confidence of coupled proposals can be trusted, learned from what the target chose
// (eagle.md section 10).
#pragma once

#include <array>
#include <span>
#include <vector>

#include "draft/drafter.h"

namespace aerie {

// Of one text. A candidate's confidence is the softmax of its and its siblings' values over the
// softness. Each of some values is judged by the log-loss that it would have had.
class LearnedSoftness {
  public:
    // Of a new text; drafts have at most so many candidates.
    void begin(int candidates);
    // For the next draft, at this temperature of the target, which is not 0.
    float value(float temperature) const;
    // The candidates of a draft, whose log-probabilities were made with that value.
    void ranked(std::span<const Candidate> table);
    // What became of that draft.
    void learn(const Verified& verified);

    // Log-losses of all candidates so far whose parent the text went on from: of the values in use
    // at the time, and of the first one.
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
    std::vector<Candidate> table_;  // empty: nothing to learn from
    Losses total_;
};

}  // namespace aerie
