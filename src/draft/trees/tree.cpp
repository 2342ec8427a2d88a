// Derived properties of a tree, and the reader of static trees.
#include "draft/trees/tree.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "io/input_file.h"
#include "io/json.h"

namespace aerie {

NodeList depths(const TokenTree& tree) {
    NodeList depth;
    depth.resize(tree.tokens.size());
    for (int i = 1; i < tree.size(); ++i) depth[i] = depth[tree.parents[i]] + 1;
    return depth;
}

PathTokens path_tokens(const TokenTree& tree, int node) {
    PathTokens path;
    for (; node > 0; node = tree.parents[size_t(node)]) path.push_back(tree.tokens[size_t(node)]);
    return path;
}

FixedVector<Row, kMaxNodes> verify_rows(const TokenTree& tree, int prefix) {
    FixedVector<Row, kMaxNodes> rows;
    rows.resize(tree.tokens.size());
    for (int i = 0; i < tree.size(); ++i) {
        Row& row = rows[i];
        row.token = tree.tokens[i];
        row.prefix = row.position = prefix;
        row.slot = prefix + i;
        if (i == 0) continue;
        const Row& parent = rows[tree.parents[i]];
        row.position = parent.position + 1;
        std::copy_n(parent.path, parent.depth(), row.path);
        row.path[parent.depth()] = parent.slot;
    }
    return rows;
}

void check_tree_shape(const TreeShape& shape) {
    const auto check = [](const char* what, int value, int low, int high) {
        if (value < low || value > high)
            throw UsageError(std::string("a draft tree needs ") + what + " from " +
                             std::to_string(low) + " to " + std::to_string(high) + ", not " +
                             std::to_string(value));
    };
    check("nodes", shape.nodes, 2, kMaxNodes);
    check("levels", shape.levels, 1, kMaxDepth);
    check("top-k", shape.top_k, 1, kMaxTopK);
}

AllowedRanks::AllowedRanks(const TreePaths& paths) : children_(1) {
    const std::set<std::vector<int>> ordered(paths.begin(), paths.end());  // parents come first
    for (const std::vector<int>& path : ordered) {
        int place = kRoot;
        for (size_t i = 0; i + 1 < path.size(); ++i) place = child(place, path[i]);
        std::vector<int>& ranks = children_[size_t(place)];
        const size_t rank = size_t(path.back());
        if (ranks.size() <= rank) ranks.resize(rank + 1, kNone);
        ranks[rank] = int(children_.size());
        children_.emplace_back();
    }
}

int AllowedRanks::child(int place, int rank) const {
    if (children_.empty() || place == kNone) return place;
    const std::vector<int>& ranks = children_[size_t(place)];
    return rank < int(ranks.size()) ? ranks[size_t(rank)] : kNone;
}

bool AllowedRanks::has_children(int place) const {
    return place != kNone && (children_.empty() || !children_[size_t(place)].empty());
}

TreePaths chain_paths(int length) {
    TreePaths paths;
    for (int depth = 1; depth <= length; ++depth) paths.emplace_back(size_t(depth), 0);
    return paths;
}

const TreePaths& default_static_tree() {
    static const TreePaths tree = {{0},
                                   {1},
                                   {2},
                                   {3},
                                   {0, 0},
                                   {0, 1},
                                   {0, 2},
                                   {1, 0},
                                   {1, 1},
                                   {2, 0},
                                   {2, 1},
                                   {3, 0},
                                   {0, 0, 0},
                                   {0, 0, 1},
                                   {0, 0, 2},
                                   {0, 1, 0},
                                   {0, 1, 1},
                                   {0, 2, 0},
                                   {0, 2, 1},
                                   {1, 0, 0},
                                   {0, 0, 0, 0},
                                   {0, 0, 0, 1},
                                   {0, 0, 0, 2},
                                   {0, 0, 0, 0, 0},
                                   {0, 0, 0, 0, 1}};
    return tree;
}

TreePaths read_tree_file(const std::filesystem::path& path) {
    const std::string file = path.string();
    const Json json = Json::parse(read_text(path, 1 << 20), file);
    if (!json.array() || json.array()->empty())
        throw Error(file + ": expected a JSON list of paths such as [[0],[1],[0,0]]");
    TreePaths tree;
    for (const Json& item : *json.array()) {
        std::vector<int> ranks;
        for (const Json& rank : item.array() ? *item.array() : Json::Array{}) {
            int64_t value = -1;
            if (!rank.integer(value) || value < 0 || value >= kMaxTopK)
                throw Error(file + ": a child rank must be a whole number from 0 to " +
                            std::to_string(kMaxTopK - 1));
            ranks.push_back(int(value));
        }
        if (ranks.empty() || ranks.size() > size_t(kMaxDepth))
            throw Error(file + ": a path must hold 1 to " + std::to_string(kMaxDepth) + " ranks");
        tree.push_back(std::move(ranks));
    }
    if (tree.size() >= size_t(kMaxNodes))
        throw Error(file + ": at most " + std::to_string(kMaxNodes - 1) + " paths, found " +
                    std::to_string(tree.size()));
    const std::set<std::vector<int>> known(tree.begin(), tree.end());
    if (known.size() != tree.size()) throw Error(file + ": a path stands there twice");
    for (std::vector<int> parent : tree) {
        parent.pop_back();
        if (!parent.empty() && !known.count(parent))
            throw Error(file + ": a path is there without its parent");
    }
    return tree;
}

}  // namespace aerie
