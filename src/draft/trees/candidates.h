// The table of candidates that a tree is grown in: its levels, the entries that are run next, and
// the entries that become the tree (EAGLE-2 sections 4.1 and 4.2; docs/drafting.md section 3).
#pragma once

#include <span>
#include <vector>

#include "draft/trees/tree.h"

namespace aerie {

// The candidates of the previous level that one pass of the head runs.
struct LevelPlan {
    int width = 0;
    std::vector<int32_t> selection;  // numbers of the candidates within that level; empty: the best
                                     // `width`
};

// How a table grows, level by level.
struct ExpansionPlan {
    int top_k = 0;  // candidates below each row
    // After the first, which needs no choice: the root is its only row.
    std::vector<LevelPlan> levels;
    // Whether values are summed along the path; false: an ablation of EAGLE-2, Table 3.
    bool sum_values = true;
};

// Index in the table at which each level's candidates begin, and the size of the table as the last
// entry.
std::vector<int> level_offsets(const ExpansionPlan& expansion);

// The expansion of EAGLE-2: each level runs the best top_k nodes.
ExpansionPlan dynamic_expansion(const TreeShape& shape, bool sum_values);

// Makes a tree of the `kept` table entries (ascending). An entry is dropped if its parent is not
// kept or if it cannot be chosen (value -inf or NaN). `entries`, if given, receives the table entry
// of each node, -1 for the root.
TokenTree tree_of(std::span<const Candidate> table, const NodeList& kept, int pending,
                  NodeList* entries = nullptr);

// The `count` entries of [first, last) with the best values, at most kMaxNodes, in ascending order
// of index. Ties go to the lowest index. Entries that cannot be chosen (value -inf or NaN) are left
// out.
NodeList best_entries(std::span<const Candidate> table, int first, int last, int count);

// Numbers of candidates within their level.
using Frontier = FixedVector<int32_t, kMaxFrontier>;

// Puts the numbers of the `width` best candidates of table[first ..] into `frontier`, best first;
// ties go to the lowest index, as in best_entries.
void best_frontier(std::span<const Candidate> table, int first, int width, Frontier& frontier);

}  // namespace aerie
