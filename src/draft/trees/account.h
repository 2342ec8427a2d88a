// The account of one sequence: what drafting has brought and cost, against plain decoding. Drafting
// may lose a little at first, later a small share of the time and part of what it has gained. The
// unit is a plain cycle. See docs/drafting.md section 6.
#pragma once

namespace aerie {

// Tokens that a cycle is expected to put out, and plain cycles that it is expected to take.
struct TreePlan {
    double tokens = 1, cost = 1;
};

// The sources of the drafts of a cycle.
enum class Drafts { none, grafts, head };  // head: with grafts or without

struct Account {
    double tokens = 0, time = 0;  // tokens and plain cycles of recent cycles, decayed
    double rate = 1;              // tokens per plain cycle that decoding reaches; >= 1
    double balance;               // plain cycles that drafting may lose before it must stop
    double head_balance;          // the same for a head beside grafts, which then go on without it
    double share;                 // amount that each cycle without drafts adds to `balance`
    bool was_plain = false;       // whether the last cycle had no drafts

    Account();
    // Begins another text, in which drafts that failed in the last one may be tried again.
    void begin_text();
    // Books a cycle: the tokens that it put out, the plain cycles that it took, and its drafts.
    void settle(double tokens, double cost, Drafts drafts);
};

}  // namespace aerie
