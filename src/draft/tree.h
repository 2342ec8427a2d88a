// A drafted tree, and the shapes that trees can have.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "core/fixed_vector.h"
#include "core/rows.h"

namespace aerie {

// A number for each of some nodes, at most as many as a tree has.
using NodeList = FixedVector<int, kMaxNodes>;

// Something for each depth of a tree, the root's included.
template <typename T>
using DepthList = FixedVector<T, kMaxDepth + 1>;

// Tokens of a path below the root.
using PathTokens = FixedVector<int, kMaxDepth>;

// Tokens and parents, parents first. Node 0 is the root: the pending token, with parent -1.
struct TokenTree {
    NodeList tokens;
    NodeList parents;
    // What the drafter gives for each node: the log-probability of its path, 0 for the root. Empty
    // where it has no opinion.
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

NodeList depths(const TokenTree& tree);  // of each node; the root has 0
// From a node up to the one below the root.
PathTokens path_tokens(const TokenTree& tree, int node);

// The rows of a verify pass over `prefix` committed positions: node i at slot prefix + i, seeing
// its ancestors by logical order.
FixedVector<Row, kMaxNodes> verify_rows(const TokenTree& tree, int prefix);

// Shape of an EAGLE-2 tree: `nodes` verified (root included), `levels` of drafted tokens, the
// `top_k` best children of a node and the width of a level. The reference's total_token, depth + 1
// and top_k (eagle.md section 3).
struct TreeShape {
    int nodes = 60;
    int levels = 6;
    int top_k = 10;
};

// The most that a tree chosen by measurement can be.
constexpr TreeShape kMostAuto{kMaxNodes, 10, 10};

// Throws UsageError unless 2 <= nodes <= 64, 1 <= levels <= 32 and 1 <= top_k <= 32.
void check_tree_shape(const TreeShape& shape);

// A fixed tree: each path lists child ranks from the root, e.g. {0, 2, 1}.
using TreePaths = std::vector<std::vector<int>>;

// EAGLE-1's 25-node tree (mc_sim_7b_63; eagle.md section 4).
const TreePaths& default_static_tree();

// A JSON list of lists of child ranks. Missing ancestors are an error. Throws Error naming the
// file.
TreePaths read_tree_file(const std::filesystem::path& path);

}  // namespace aerie
