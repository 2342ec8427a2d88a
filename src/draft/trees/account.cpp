#include "draft/trees/account.h"

#include <algorithm>

namespace aerie {

namespace {

constexpr double kFirstBalance = 1.5;    // plain cycles that drafting may lose at first
constexpr double kFirstHeadBalance = 1;  // the part of it that a head may lose
constexpr double kHeadShare = 0.5;       // its part of later probes
constexpr double kMaxBalance = 8;        // largest balance, however much was gained
constexpr double kShare = 1.0 / 64;      // part of plain decoding's time that probes may spend
constexpr double kMinShare = 1.0 / 512;
constexpr double kDecay = 0.99;

}  // namespace

Account::Account() : balance(kFirstBalance), head_balance(kFirstHeadBalance), share(kShare) {}

void Account::begin_text() {
    share = kShare;
    head_balance = std::max(head_balance, kFirstHeadBalance);
}

void Account::settle(double brought, double cost, Drafts drafts) {
    const bool drafted = drafts != Drafts::none;
    tokens = tokens * kDecay + brought;
    time = time * kDecay + cost;
    rate = std::max(1.0, tokens / time);
    const double gain = drafted ? brought - cost : share;
    balance = std::min(kMaxBalance, balance + gain);
    const double head_gain = drafts == Drafts::head ? gain : share * kHeadShare;
    head_balance = std::min(kMaxBalance, head_balance + head_gain);
    // Probes that lose make the next ones rarer.
    if (drafted && gain > 0) share = kShare;
    if (drafted && gain < 0 && was_plain) share = std::max(kMinShare, share / 2);
    was_plain = !drafted;
}

}  // namespace aerie
