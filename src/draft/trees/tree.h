// A draft tree, and the shapes that trees can have.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "core/fixed_vector.h"
#include "core/rows.h"

namespace aerie {

// One number for each of some nodes, at most as many as a tree has.
using NodeList = FixedVector<int, kMaxNodes>;

// One value for each depth of a tree, the root's included.
template <typename T>
using DepthList = FixedVector<T, kMaxDepth + 1>;

// Tokens on a path, without the root.
using PathTokens = FixedVector<int, kMaxDepth>;

// Tokens and parents, parents first. Node 0 is the root: the pending token, with parent -1.
struct TokenTree {
    NodeList tokens;
    NodeList parents;
    // The drafter's value of each node: the log-probability of its path, 0 for the root. Empty if
    // the drafter gives none.
    FixedVector<float, kMaxNodes> values;

    explicit TokenTree(int pending) : tokens{pending}, parents{-1} {}
    int size() const { return int(tokens.size()); }
    void add(int token, int parent) {
        tokens.push_back(token);
        parents.push_back(parent);
    }
    friend bool operator==(const TokenTree& a, const TokenTree& b) {
        return a.tokens == b.tokens && a.parents == b.parents;
    }
};

// The depth of each node; the root has 0.
NodeList depths(const TokenTree& tree);
// The tokens from a node up to, but without, the root.
PathTokens path_tokens(const TokenTree& tree, int node);

// The rows of a verify pass over `prefix` committed positions. Node i is in slot prefix + i and
// attends to the prefix, its ancestors and itself, in this order.
FixedVector<Row, kMaxNodes> verify_rows(const TokenTree& tree, int prefix);

// Shape of an EAGLE-2 tree: `nodes` verified (root included), `levels` of drafted tokens, and
// `top_k`, which is both the number of children of a node and the width of a level. The reference
// calls them total_token, depth + 1 and top_k (docs/drafting.md section 3).
struct TreeShape {
    int nodes = 60;
    int levels = 6;
    int top_k = 10;
};

// The largest shape of a tree that is sized by measurement.
constexpr TreeShape kMaxAuto{kMaxNodes, 10, 10};

// Throws UsageError unless 2 <= nodes <= 64, 1 <= levels <= 32 and 1 <= top_k <= 32.
void check_tree_shape(const TreeShape& shape);

// A fixed tree: each path lists child ranks from the root, e.g. {0, 2, 1}.
using TreePaths = std::vector<std::vector<int>>;

// The children, by rank, that the nodes of a tree may have: those on some paths, or all.
class AllowedRanks {
  public:
    static constexpr int kRoot = 0, kNone = -1;

    AllowedRanks() = default;  // all
    explicit AllowedRanks(const TreePaths& paths);
    // The place of the child of this rank below a place; kNone if the tree may not have it.
    int child(int place, int rank) const;
    bool has_children(int place) const;

  private:
    std::vector<std::vector<int>> children_;  // [place][rank]; empty: all children are allowed
};

// A path of `length` best children.
TreePaths chain_paths(int length);

// EAGLE-1's tree of 25 nodes below the root (mc_sim_7b_63; docs/drafting.md section 4).
const TreePaths& default_static_tree();

// Reads a JSON list of lists of child ranks. A path without its parent is an error. Throws Error
// naming the file.
TreePaths read_tree_file(const std::filesystem::path& path);

}  // namespace aerie
