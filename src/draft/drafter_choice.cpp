// The constants bound what may be lost to find out which drafter is best.
#include "draft/drafter_choice.h"

#include <algorithm>

namespace aerie {

namespace {

constexpr double kTextMemory = 0.95, kLongMemory = 0.995;
constexpr double kTextWeight = 15;  // how many cycles the record of all texts counts for in one
constexpr double kFirstTokens = 2, kFirstCost = 1.2, kFirstWeight = 2;  // priors
constexpr double kKnown = 6;              // cycles after which a drafter's worth is known
constexpr double kStay = 0.05;            // tokens per cycle by which another one must be better
constexpr double kProbeShare = 1.0 / 48;  // tokens per cycle that may be lost by probes
constexpr double kMaxAllowance = 2;
constexpr double kUnknownLoss = 0.4;  // assumed loss in a cycle of an unknown drafter
constexpr int kProbeCycles = 4;       // length of a probe; its first cycle catches up
constexpr int kIdleCycles = 48;       // cycles before a known drafter is probed again
constexpr int kCatchingUp = 2;        // cycles that a head may miss without having to catch up

}  // namespace

int cycle_kind(double expected) {
    return expected < 0.3 ? 0 : expected < 1.5 ? 1 : 2;
}

bool DrafterRecord::is_known() const {
    return all_.tokens.weight >= kKnown;
}

double DrafterRecord::tokens(int kind) const {
    return of_kind_[kind].tokens.mean(all_.tokens.mean(kFirstTokens, kFirstWeight), kFirstWeight);
}

double DrafterRecord::cost(int kind) const {
    return of_kind_[kind].cost.mean(all_.cost.mean(kFirstCost, kFirstWeight), kFirstWeight);
}

void DrafterRecord::add(int kind, double tokens, double cost) {
    for (Cycles* cycles : {&of_kind_[kind], &all_}) {
        cycles->tokens.add(tokens, 1, kLongMemory);
        cycles->cost.add(cost, 1, kLongMemory);
    }
}

double DrafterChoice::worth(const DrafterRecord& record, size_t drafter, double rate,
                            int kind) const {
    const Factors& here = factors_[drafter];
    return record.tokens(kind) * here.tokens.mean(1, kTextWeight) -
           rate * record.cost(kind) * here.cost.mean(1, kTextWeight);
}

size_t DrafterChoice::pick(std::span<const DrafterRecord> records, double of_lookup, double rate,
                           int kind) {
    const auto worth_of = [&](size_t i) { return worth(records[i], i, rate, kind); };
    for (size_t i = 1; i < records.size(); ++i)
        if (records[i].is_known() && worth_of(i) > worth_of(stays_) + kStay) stays_ = i;
    const double of_head = worth_of(stays_);
    // Probes a drafter that is unknown, or has long not been asked, as soon as the allowance covers
    // the expected loss.
    for (size_t i = 1; i < records.size(); ++i) {
        const bool is_known = records[i].is_known();
        if (i == stays_ || (is_known && idle_[i] < kIdleCycles)) continue;
        const double loss = is_known ? std::max(of_head, of_lookup) - worth_of(i) : kUnknownLoss;
        if (kProbeCycles * loss > allowance_) continue;
        allowance_ -= std::max(0.0, kProbeCycles * loss);
        probed_ = i;
        probing_ = kProbeCycles - 1;
        return i;
    }
    return of_head > of_lookup ? stays_ : 0;
}

size_t DrafterChoice::next(std::span<const DrafterRecord> records, double of_lookup, double rate,
                           int kind) {
    asked_ = 0;
    if (records.size() == 1) return asked_;
    for (int& cycles : idle_) ++cycles;
    allowance_ = std::min(kMaxAllowance, allowance_ + kProbeShare);
    if (probing_ > 0) {
        --probing_;
        asked_ = probed_;
    } else {
        asked_ = pick(records, of_lookup, rate, kind);
    }
    catches_up_ = idle_[asked_] > kCatchingUp;
    if (asked_ > 0) idle_[asked_] = 0;
    return asked_;
}

void DrafterChoice::learn(DrafterRecord& record, int kind, double tokens, double cost) {
    if (catches_up_) return;  // the cost of catching up predicts nothing
    Factors& here = factors_[asked_];
    here.tokens.add(tokens, record.tokens(kind), kTextMemory);
    here.cost.add(cost, record.cost(kind), kTextMemory);
    record.add(kind, tokens, cost);
}

}  // namespace aerie
