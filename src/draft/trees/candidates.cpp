// Selection from the table of candidates. Ties go to the lowest index, as on every device.
#include "draft/trees/candidates.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace aerie {

std::vector<int> level_offsets(const ExpansionPlan& expansion) {
    std::vector<int> offsets = {0, expansion.top_k};
    for (const LevelPlan& level : expansion.levels)
        offsets.push_back(offsets.back() + level.width * expansion.top_k);
    return offsets;
}

ExpansionPlan dynamic_expansion(const TreeShape& shape, bool sum_values) {
    ExpansionPlan expansion{shape.top_k, {}, sum_values};
    expansion.levels.assign(size_t(shape.levels) - 1, LevelPlan{shape.top_k, {}});
    return expansion;
}

TokenTree tree_of(std::span<const Candidate> table, const NodeList& kept, int pending,
                  NodeList* entries) {
    TokenTree tree(pending);
    tree.values = {0};
    if (entries) *entries = {-1};
    NodeList node_of;  // node of each kept entry; -1: dropped
    for (int index : kept) {
        const Candidate& candidate = table[size_t(index)];
        int parent = 0;
        if (candidate.parent >= 0) {
            const auto end = kept.begin() + node_of.size();
            const auto place = std::lower_bound(kept.begin(), end, candidate.parent);
            const bool there = place != end && *place == candidate.parent;
            parent = there ? node_of[size_t(place - kept.begin())] : -1;
        }
        if (!(candidate.value > -std::numeric_limits<float>::infinity())) parent = -1;
        node_of.push_back(parent < 0 ? -1 : tree.size());
        if (parent < 0) continue;
        tree.add(candidate.token, parent);
        tree.values.push_back(candidate.value);
        if (entries) entries->push_back(index);
    }
    return tree;
}

NodeList best_entries(std::span<const Candidate> table, int first, int last, int count) {
    NodeList best;  // a heap with the worst on top
    count = std::min(count, kMaxNodes);
    const auto before = [&](int a, int b) { return better(table.data(), a, b); };
    for (int i = first; i < last; ++i) {
        if (!(table[size_t(i)].value > -std::numeric_limits<float>::infinity())) continue;
        if (int(best.size()) == count) {
            if (count == 0 || !before(i, best.front())) continue;
            std::pop_heap(best.begin(), best.end(), before);
            best.pop_back();
        }
        best.push_back(i);
        std::push_heap(best.begin(), best.end(), before);
    }
    std::sort(best.begin(), best.end());
    return best;
}

void best_frontier(std::span<const Candidate> table, int first, int width, Frontier& frontier) {
    FixedVector<int32_t, kMaxFrontier * kMaxTopK> order;
    order.resize(table.size() - size_t(first));
    std::iota(order.begin(), order.end(), 0);
    width = std::min(width, int(order.size()));
    std::partial_sort(order.begin(), order.begin() + width, order.end(), [=](int32_t a, int32_t b) {
        return better(table.data(), first + a, first + b);
    });
    frontier.resize(size_t(width));
    std::copy_n(order.begin(), width, frontier.begin());
}

}  // namespace aerie
