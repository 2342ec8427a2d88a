// Chooses each cycle's tree by what it costs and what it can bring. A cycle is worth its expected
// tokens minus its time at the rate that decoding reaches (Dinkelbach's parametric form of tokens
// per time): nodes are kept, levels run and the head is run at all only where that pays. An account
// bounds what drafting may lose against plain decoding. Host code alone; costs are in plain cycles.
#pragma once

#include <memory>
#include <vector>

#include "draft/account.h"
#include "draft/cycle_costs.h"
#include "draft/estimate.h"
#include "draft/grow.h"

namespace aerie {

class TreePolicy final : public FrontierPolicy {
  public:
    // Of one text; the costs are those of all texts on the device.
    TreePolicy(const TreeShape& most, std::shared_ptr<CycleCosts> costs);

    CycleCosts& costs() { return *costs_; }

    // A new text: what failed in the last one may be tried again.
    void begin_text();
    // Whether a cycle whose head must first read `backlog` positions may pay.
    bool would_draft(int backlog) const;
    // Begins a cycle; false: decode plainly, the head is not needed.
    bool begin(int backlog);
    // The same for guesses that are grafted alone, whose making costs so much.
    bool begin_grafts(double cost);
    // What was spent besides.
    void spend(double cost) { spent_ += cost; }
    void choose(std::span<const Candidate> table, int first, Frontier& frontier) override;
    // A guess that is not the head's: the token follows an entry, -1: the root, with this
    // probability. Returns its entry: the head's own, which may get likelier, or a new one behind
    // all others.
    int graft(int parent, int token, float conditional);
    void end_grafts();  // to be called after the last one
    int entries() const { return int(probability_.size()); }
    // The table entries to verify, ascending; none: not even one pays.
    NodeList kept() const;
    // The cycle with those.
    TreePlan planned() const;
    // What became of the tree of those entries: its accepted nodes, the root first, and the token
    // that the target chose after the last of them.
    void learn(const TokenTree& tree, std::span<const int> accepted, int next);

    void save(SaveSink& to) const;
    void load(SaveSource& from);  // throws Error

    Account& account() { return account_; }
    const Account& account() const { return account_; }

  private:
    // The candidates below one node.
    struct Siblings {
        int parent;  // entry; -1: the root
        int first, count;
    };

    // What is grafted where a head has guessed nothing, something else, or the same.
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
    double gain_below(double probability, int depth) const;
    void add_siblings(std::span<const Candidate> table, const Siblings& siblings);
    void calibrate(std::span<const int> tokens);
    bool calibrate(const Siblings& siblings, int depth, int token, int& entry);
    void begin_cycle();

    TreeShape most_;
    std::shared_ptr<CycleCosts> costs_;

    // Of the text so far.
    double trust_;                       // added to the log-odds that the head gives its best child
    DepthList<Estimate> truth_;          // [depth]: true per predicted, of all candidates there
    DepthList<Estimate> confidence_[2];  // [rank][depth]: probability of the best children
    // [kind]: true per predicted, of grafts.
    Estimate grafts_were_[kGraftKinds];
    Account account_;

    // Of this cycle.
    bool drafting_ = false;
    int depth_ = 0;         // of the newest level
    double spent_ = 0;      // on the head
    double row_price_ = 0;  // tokens that a further verified row must bring
    NodeList best_;         // a heap of the likeliest entries so far, the least of them on top
    std::vector<float> probability_;  // [entry]: of its path, calibrated
    std::vector<float> conditional_;  // [entry]: given its parent, calibrated but for truth_
    std::vector<int> drafted_;        // [entry]: its token
    std::vector<Siblings> siblings_;
    FixedVector<Graft, kMaxNodes> grafts_;
};

}  // namespace aerie
