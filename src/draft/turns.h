// Whom --draft auto asks in a cycle: by what each drafter has brought and cost, in all texts and in
// this one. Drafter 0 is lookup, whose proposal is always there; the others are asked for theirs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "draft/estimate.h"

namespace aerie {

// Heads bring more where lookup has guesses, which are grafted: kinds of cycles by the tokens that
// lookup is expected to bring.
constexpr int kCycleKinds = 3;
int cycle_kind(double expected);

// Tokens that a drafter's cycles put out, and the plain cycles that they took, in all texts.
class DrafterRecord {
  public:
    bool is_known() const;
    // Of a cycle.
    double tokens(int kind) const;
    double cost(int kind) const;
    void add(int kind, double tokens, double cost);

  private:
    struct Cycles {
        Estimate tokens, cost;
    };
    Cycles of_kind_[kCycleKinds], all_;
};

// Of one text.
class Turns {
  public:
    explicit Turns(size_t drafters) : factors_(drafters), idle_(drafters) {}
    // Of a text that begins as another one does.
    Turns(size_t drafters, const Turns& like) : factors_(like.factors_), idle_(drafters) {}

    void begin_text() { factors_.assign(factors_.size(), {}); }
    // Who is asked. `of_lookup`: tokens that its proposal is worth at the rate that decoding
    // reaches, in tokens a plain cycle.
    size_t next(std::span<const DrafterRecord> records, double of_lookup, double rate, int kind);
    // What came of asking a head, whose record is that of all texts.
    void learn(DrafterRecord& record, int kind, double tokens, double cost);

  private:
    struct Factors {  // of this text's cycles, per what was to be expected
        Estimate tokens, cost;
    };

    double worth(const DrafterRecord& record, size_t drafter, double rate, int kind) const;
    size_t pick(std::span<const DrafterRecord> records, double of_lookup, double rate, int kind);

    std::vector<Factors> factors_;
    std::vector<int> idle_;  // cycles since each was asked
    double allowance_ = 0;   // for probes
    size_t stays_ = 1;       // the head that is asked where one is
    size_t probed_ = 0;      // who is asked beside it, for so many further cycles
    int probing_ = 0;
    size_t asked_ = 0;  // in the newest cycle
    bool catches_up_ = false;
};

}  // namespace aerie
