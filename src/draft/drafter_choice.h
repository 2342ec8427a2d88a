// Chooses the drafter of each cycle for --draft best, by the tokens and costs of each drafter in
// all texts and in this one. Drafter 0 is lookup: its proposal is always made; the others are run
// only when they are chosen.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "draft/trees/estimate.h"

namespace aerie {

// Kinds of cycles, by the tokens that lookup is expected to bring. Heads bring more where lookup
// has continuations, since these are grafted.
constexpr int kCycleKinds = 3;
int cycle_kind(double expected);

// Tokens that a drafter's cycles put out, and plain cycles that they took, over all texts.
class DrafterRecord {
  public:
    bool is_known() const;
    // Expected values for a cycle of this kind.
    double tokens(int kind) const;
    double cost(int kind) const;
    void add(int kind, double tokens, double cost);

  private:
    struct Cycles {
        Estimate tokens, cost;
    };
    Cycles of_kind_[kCycleKinds], all_;
};

// The choices for one sequence.
class DrafterChoice {
  public:
    explicit DrafterChoice(size_t drafters) : factors_(drafters), idle_(drafters) {}
    // For a sequence that begins as another one does.
    DrafterChoice(size_t drafters, const DrafterChoice& like)
        : factors_(like.factors_), idle_(drafters) {}

    void begin_text() { factors_.assign(factors_.size(), {}); }
    // Returns the drafter of the next cycle. `of_lookup`: gain of lookup's proposal in tokens, at
    // `rate`, which is in tokens per plain cycle.
    size_t next(std::span<const DrafterRecord> records, double of_lookup, double rate, int kind);
    // Records the result of a cycle drafted by a head; `record` is the head's record over all
    // texts.
    void learn(DrafterRecord& record, int kind, double tokens, double cost);

  private:
    struct Factors {  // actual per expected values of this text's cycles
        Estimate tokens, cost;
    };

    double worth(const DrafterRecord& record, size_t drafter, double rate, int kind) const;
    size_t pick(std::span<const DrafterRecord> records, double of_lookup, double rate, int kind);

    std::vector<Factors> factors_;
    std::vector<int> idle_;  // cycles since each drafter was last asked
    double allowance_ = 0;   // tokens that probes may lose
    size_t stays_ = 1;       // the best known head
    size_t probed_ = 0;      // the head that is probed, for `probing_` further cycles
    int probing_ = 0;
    size_t asked_ = 0;  // drafter of the newest cycle
    // Whether that drafter had to catch up.
    bool catches_up_ = false;
};

}  // namespace aerie
