// Chooses each cycle's tree by its cost and its expected tokens (docs/drafting.md section 6). The
// gain of a cycle is its expected tokens minus its time at the rate that decoding reaches
// (Dinkelbach's parametric form of tokens per time). Nodes are kept, levels are run and the head is
// run at all only if that increases the gain. An account bounds the loss against plain decoding.
// The policy runs on the host; costs are in plain cycles.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "draft/trees/account.h"
#include "draft/trees/cycle_costs.h"
#include "draft/trees/estimate.h"
#include "draft/trees/tree_grower.h"

namespace aerie {

class TreePolicy {
  public:
    // A policy for one sequence; the costs are shared by all sequences on the device. The head's
    // candidates may stand where `allowed` says; the policy keeps a reference to it. `has_grafts`:
    // a head drafts beside grafts, which must not suffer from what the head loses.
    TreePolicy(const TreeShape& most, const AllowedRanks& allowed,
               std::shared_ptr<CycleCosts> costs, bool has_grafts = false);
    TreePolicy(const TreeShape&, AllowedRanks&&, std::shared_ptr<CycleCosts>,
               bool = false) = delete;  // it would refer to what is gone

    CycleCosts& costs() { return *costs_; }

    // Begins another text, in which drafts that failed in the last one may be tried again.
    void begin_text();
    // Whether a cycle may pay in which the head must first read `backlog` positions.
    bool would_draft(int backlog) const;
    // Begins a cycle. Returns false if it should decode plainly, without the head.
    bool begin(int backlog);
    // Begins a cycle with grafts alone; `cost` is the cost of finding them.
    bool begin_grafts(double cost);
    // Adds a further cost to this cycle.
    void spend(double cost) { spent_ += cost; }
    // Chooses which candidates of the newest level to run next; see ChooseFrontier.
    void choose(std::span<const Candidate> table, int first, Frontier& frontier);
    // Adds a candidate that is not the head's: `token` below the entry `parent` (-1: the root),
    // with this probability given its parent. Returns its entry: the head's own, which may become
    // likelier, or a new one behind all others.
    int graft(int parent, int token, float conditional);
    void end_grafts();  // must be called after the last graft
    int entries() const { return int(probability_.size()); }
    // The table entries to verify, ascending; empty if not even one pays.
    NodeList kept() const;
    // The expected tokens and cost of the cycle with these entries.
    TreePlan planned() const;
    // Learns from the tree of these entries: its accepted nodes, the root first, and the token that
    // the target chose after the last of them.
    void learn(const TokenTree& tree, std::span<const int> accepted, int next);

    void save(SaveSink& to) const;
    void load(SaveSource& from);  // throws Error

    Account& account() { return account_; }
    const Account& account() const { return account_; }

  private:
    // The candidates below one node, consecutive entries.
    struct Siblings {
        int parent;  // entry; -1: the root
        int first, count;
    };

    // A graft by the head's candidates below the same parent: there are none, only others, or
    // the same.
    enum GraftKind { alone, beside, same, kGraftKinds };
    struct Graft {
        int parent, entry, token;
        GraftKind kind;
        float conditional;
    };

    int find(int parent, int token, bool& has_children) const;
    void judge_grafts(std::span<const int> tokens);
    void read_level(std::span<const Candidate> table, int first);
    bool less_likely(int a, int b) const;
    void offer(int entry);
    NodeList likeliest() const;
    int best_count(const NodeList& entries) const;
    template <typename Self, typename Visit>
    static void each_lesson(Self& self, const Visit& visit);
    double row_cost(int nodes) const;
    double expected(int depth, int rank) const;
    double gain_below(double probability, int depth, int place) const;
    void add_siblings(std::span<const Candidate> table, const Siblings& siblings);
    void calibrate(std::span<const int> tokens);
    bool calibrate(const Siblings& siblings, int depth, int token, int& entry);
    void begin_cycle();
    // Plain cycles that this cycle may lose if the head runs in it.
    double most_for_head() const {
        return has_grafts_ ? std::min(account_.balance, account_.head_balance) : account_.balance;
    }

    TreeShape most_;
    const AllowedRanks* allowed_;
    std::shared_ptr<CycleCosts> costs_;
    bool has_grafts_;

    // Statistics of the sequence.
    double trust_;                       // added to the log-odds that the head gives its best child
    DepthList<Estimate> truth_;          // [depth]: true tokens per predicted one, all candidates
    DepthList<Estimate> confidence_[2];  // [rank][depth]: probability of the two best children
    // [kind]: true grafts per predicted one.
    Estimate grafts_were_[kGraftKinds];
    Account account_;

    // The current cycle.
    int depth_ = 0;         // depth of the newest level
    double spent_ = 0;      // cost of drafting so far
    double row_price_ = 0;  // tokens that a further verified row must bring
    NodeList best_;         // heap of the likeliest entries so far, with the least likely on top
    std::vector<float> probability_;  // [entry]: calibrated probability of its path
    std::vector<float> conditional_;  // [entry]: given its parent, calibrated except by truth_
    std::vector<int> drafted_;        // [entry]: token
    std::vector<int> places_;         // [entry]: its place by AllowedRanks; grafts have none
    std::vector<Siblings> siblings_;
    FixedVector<Graft, kMaxNodes> grafts_;
};

}  // namespace aerie
