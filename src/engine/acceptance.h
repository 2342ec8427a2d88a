// Recorded acceptance: what a real head proposed and a real target chose, cycle by cycle, so that
// speed can be measured where there is no acceptance to speak of (random weights).
#pragma once

#include <filesystem>
#include <vector>

#include "draft/drafter.h"

namespace aerie {

// A drafted node whose children were recorded; the first of a cycle is the root.
struct RecordedNode {
    int parent = -1;                 // index of its parent in the cycle; -1: this is the root
    int rank = -1;                   // it is its parent's child of this rank
    int truth = -1;                  // rank of the child that is the true continuation; -1: none
    std::vector<float> log_probs;    // of its children by rank; further ones were negligible
    std::vector<int> child_of_rank;  // index in the cycle; -1: not recorded
};
using RecordedCycle = std::vector<RecordedNode>;

struct AcceptanceRecord {
    static constexpr float kNegligible = -12;  // log-probability of a child that was not recorded
    std::vector<RecordedCycle> cycles;
    double tau = 0;  // of EAGLE-2's tree 60,6,10 over these cycles
};

// Throws Error naming the file and what is wrong with it.
AcceptanceRecord read_acceptance(const std::filesystem::path& path);

// Puts a record in the place of what head and target compute. A candidate stands for the recorded
// one at the same place in the tree (child ranks from the root), so any shape can be replayed.
class ForcedAcceptance {
  public:
    explicit ForcedAcceptance(AcceptanceRecord record) : record_(std::move(record)) {}

    // Nothing is ever accepted.
    void forbid() { shift_ = -1; }
    // Makes true steps rarer or more frequent, always the same ones, until tau of the tree 60,6,10
    // is `tau`, at least 1. Throws UsageError if it cannot be reached.
    void rescale(double tau);
    // Begins with the record's first cycle again.
    void restart() { cycle_ = 0; }

    // A DraftOptions::on_level: rewrites values and log-probabilities of a new level.
    void level(std::span<Candidate> table, int first, int last);
    // What the target is taken to have chosen after each node of the tree made of these levels.
    // Where the levels were written the next proposal gets the next cycle, after the last the
    // first.
    NodeList choices(const TokenTree& tree);

    // Tokens a cycle of a tree of this shape over all recorded cycles, without a model.
    double tau(const TreeShape& shape);

  private:
    struct Place {
        int node = -1;  // of the recorded cycle; -1: its children were not recorded
        bool is_true = false;
    };
    int truth(const Place& place, int depth) const;
    Place child(const Place& parent, int rank, int truth) const;
    int choice_below(int entry) const;
    TokenTree replay(const TreeShape& shape);

    AcceptanceRecord record_;
    double shift_ = 0;  // below 0: share of true steps that fail; above: of failures made true
    size_t cycle_ = 0;
    // Of the tree being grown: where each table entry stands in the record, and the table.
    std::vector<Place> places_;
    std::vector<Candidate> table_;
    std::vector<int> depths_;
};

}  // namespace aerie
