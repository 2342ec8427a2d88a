// Chooses each cycle's tree by what it costs and what it can bring. A cycle is worth its expected
// tokens minus its time at the rate that decoding reaches (Dinkelbach's parametric form of tokens
// per time): nodes are kept, levels run and the head is run at all only where that pays. An account
// bounds what drafting may lose against plain decoding. Host code alone; costs are in plain cycles.
#pragma once

#include <memory>
#include <vector>

#include "draft/cycle_costs.h"
#include "draft/grow.h"

namespace aerie {

// A mean that forgets, drawn towards a prior while it knows little.
struct Estimate {
    double sum = 0, weight = 0;

    void add(double value, double by, double memory) {
        sum = sum * memory + value;
        weight = weight * memory + by;
    }
    double mean(double prior, double prior_weight) const {
        return (sum + prior_weight * prior) / (weight + prior_weight);
    }
};

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
    void choose(std::span<const Candidate> table, int first, Frontier& frontier) override;
    // The table entries to verify, ascending; none: not even one pays.
    NodeList kept() const;
    // What became of the tree of those entries: its accepted nodes, the root first, and the token
    // that the target chose after the last of them.
    void learn(const TokenTree& tree, std::span<const int> accepted, int next);

    void save(SaveSink& to) const;
    void load(SaveSource& from);  // throws Error

    double balance() const { return balance_; }  // what drafting may lose before it must stop

  private:
    // The candidates below one node.
    struct Siblings {
        int parent;  // entry; -1: the root
        int first, count;
    };

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
    void settle(double tokens, double cost);

    TreeShape most_;
    std::shared_ptr<CycleCosts> costs_;

    // Of the text so far.
    double trust_;                       // added to the log-odds that the head gives its best child
    DepthList<Estimate> truth_;          // [depth]: true per predicted, of all candidates there
    DepthList<Estimate> confidence_[2];  // [rank][depth]: probability of the best children
    double tokens_ = 0, time_ = 0;       // of recent cycles, decayed
    double rate_ = 1;                    // tokens per plain cycle that decoding reaches; >= 1
    double balance_, share_;
    bool was_plain_ = false;

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
};

}  // namespace aerie
