// What drafting has brought and cost in a text, against plain decoding: it may lose a little at
// first, then a small share of the time and part of what it has gained. In plain cycles.
#pragma once

namespace aerie {

// What a cycle is expected to put out and to take.
struct TreePlan {
    double tokens = 1, cost = 1;
};

struct Account {
    double tokens = 0, time = 0;  // of recent cycles, decayed
    double rate = 1;              // tokens per plain cycle that decoding reaches; >= 1
    double balance;               // what drafting may lose before it must stop
    double share;                 // of a plain cycle that each one adds to it
    bool was_plain = false;       // the last cycle

    Account();
    // A new text: what failed in the last one may be tried again.
    void begin_text();
    // Books a cycle: what it put out, what it took, and whether it had drafts.
    void settle(double tokens, double cost, bool drafted);
};

}  // namespace aerie
