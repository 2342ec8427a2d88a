// The table of candidates that a tree is grown in: which levels it has, which of its entries are
// run next, and which become the tree (EAGLE-2 sections 4.1 and 4.2; eagle.md section 3).
#pragma once

#include <span>
#include <vector>

#include "draft/tree.h"

namespace aerie {

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

// The `kept` table entries (ascending) as a tree. One whose parent is not kept is dropped; so is
// one that cannot be chosen (value -inf or NaN). `entries`: which of the table each node is, -1 for
// the root; may be absent.
TokenTree tree_of(std::span<const Candidate> table, const NodeList& kept, int pending,
                  NodeList* entries = nullptr);

// The `count` entries of [first, last) with the best value, at most kMaxNodes; ties to the lowest
// index; entries that cannot be chosen (value -inf or NaN) never. Ascending.
NodeList best_entries(std::span<const Candidate> table, int first, int last, int count);

// Numbers of candidates within their level.
using Frontier = FixedVector<int32_t, kMaxFrontier>;

// The `width` best candidates of table[first ..], best first; in the order of best_entries.
void best_frontier(std::span<const Candidate> table, int first, int width, Frontier& frontier);

}  // namespace aerie
