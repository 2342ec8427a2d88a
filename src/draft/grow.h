// EAGLE-2's scheduler: grows the table of candidates level by level on the device, then chooses the
// tree on the host (EAGLE-2 sections 4.1 and 4.2; eagle.md section 3). Static trees are the same
// expansion with the frontier given.
#pragma once

#include <vector>

#include "draft/drafter.h"
#include "draft/eagle_head.h"

namespace aerie {

// Confidence of coupled proposals: log-softmax of the best perturbed values over this (eagle.md
// section 10).
constexpr float kCoupledSoftness = 0.7f;

// One level of head passes: which candidates of the level before are run.
struct Level {
    int width = 0;
    std::vector<int32_t> selection;  // their numbers within that level; empty: the best `width`
};

struct Expansion {
    int top_k = 0;              // candidates of each row
    std::vector<Level> levels;  // after the first: the root's candidates need no choice
    bool sum_values = true;
};

// Where each level's candidates begin in the table; one more entry than levels of candidates.
std::vector<int> level_offsets(const Expansion& expansion);

// Levels of the best top_k nodes each, as EAGLE-2 grows them.
Expansion dynamic_expansion(const TreeShape& shape, bool sum_values);

// The `kept` table entries (ascending) as a tree; one whose parent is not kept is dropped.
TokenTree tree_of(const std::vector<Candidate>& table, std::vector<int> kept, int pending);

// The `count` entries of [first, last) with the best value; ties to the lowest index; entries that
// cannot be chosen (value -inf or NaN) never. Ascending.
std::vector<int> best_entries(const std::vector<Candidate>& table, int first, int last, int count);

struct GrowLimits {
    int top_k = 0;
    int width = 0;       // most rows of a level
    int candidates = 0;  // most entries of the table
};

struct GrowScratch {
    void add_to(TensorPlan& plan, const GrowLimits& limits, int hidden_size, int vocab);

    Tensor logits;                           // [width, vocab]
    Tensor hidden, features;                 // [width, hidden]
    Tensor ids, log_probs;                   // [width, top_k]
    Tensor table;                            // [candidates, kCandidateInts]
    Tensor frontier, parent_row, selection;  // [1, width]
    Tensor rows[2];                          // [width, kRowInts]: this level's and the next's
};

class TreeGrower {
  public:
    TreeGrower(Backend& be, EagleHead& head, const GrowLimits& limits, Proposals proposals);

    // Runs the head level by level and returns the whole table. last_hidden [1, hidden] is the
    // head's output at the last committed position, whose row is last_row.
    std::vector<Candidate> expand(const Expansion& expansion, Tensor last_hidden, Rows last_row,
                                  const DraftContext& context);

  private:
    void rank(Tensor hidden, const DraftContext& context, int level, int k);
    Rows select(const Expansion& expansion, size_t level, Rows rows);

    Backend& be_;
    EagleHead& head_;
    Proposals proposals_;
    Buffer memory_;
    GrowScratch scratch_;
};

}  // namespace aerie
