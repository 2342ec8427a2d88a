// The record says which drafted token is true; the tree says where the text goes on.
#include "measure/forced_acceptance.h"

#include <algorithm>

#include "core/error.h"
#include "core/rng.h"
#include "draft/trees/tree_grower.h"
#include "engine/accept.h"

namespace aerie {

namespace {

const TreeShape kPaperShape{60, 6, 10};

}  // namespace

ForcedAcceptance::ForcedAcceptance(RecordedDrafts recorded) : recorded_(std::move(recorded)) {
    restart();
}

void ForcedAcceptance::restart(size_t text) {
    table_.clear();
    go_to(text % recorded_.texts.size(), 0);
}

void ForcedAcceptance::go_to(size_t text, int position) {
    text_ = text;
    position_ = position;
    if (position_ >= int(recorded_.texts[text_].size())) {
        text_ = (text_ + 1) % recorded_.texts.size();
        position_ = 0;
    }
    draft_ = decode(recorded_.texts[text_][size_t(position_)]);
}

// The number in [0, 1) that belongs to a token of the text, from whichever position it is drafted.
double ForcedAcceptance::draw(int depth) const {
    return double(philox(0, {uint32_t(text_), uint32_t(position_ + depth), 0, 0})[0]) /
           4294967296.0;
}

// Rank of the true child of a place; -1: none.
int ForcedAcceptance::truth(const Place& parent) const {
    if (!parent.is_true) return -1;
    if (shift_ < 0 && draw(parent.depth + 1) < -shift_) return -1;
    if (shift_ > 0 && draw(parent.depth + 1) < shift_) return 0;
    return parent.node >= 0 ? draft_[size_t(parent.node)].truth : -1;
}

ForcedAcceptance::Place ForcedAcceptance::child(const Place& parent, int rank) const {
    const int truth = this->truth(parent);
    Place place{-1, rank == truth, parent.depth + 1};
    if (parent.node < 0) return place;
    const RecordedNode& node = draft_[size_t(parent.node)];
    // If the first child was made the true one, it swaps places with the child that was true.
    if (truth == 0 && node.truth > 0 && (rank == 0 || rank == node.truth)) rank ^= node.truth;
    if (rank < int(node.children.size())) place.node = node.children[size_t(rank)].node;
    return place;
}

float ForcedAcceptance::log_prob(const Place& parent, int rank) const {
    if (parent.node < 0) return RecordedDrafts::kNegligible;
    const auto& children = draft_[size_t(parent.node)].children;
    return rank < int(children.size()) ? children[size_t(rank)].log_prob
                                       : RecordedDrafts::kNegligible;
}

void ForcedAcceptance::level(std::span<Candidate> table, int first, int last) {
    places_.resize(size_t(last));
    int rank = 0;
    for (int i = first; i < last; ++i) {
        Candidate& candidate = table[size_t(i)];
        const int parent = candidate.parent;
        rank = i > first && table[size_t(i) - 1].parent == parent ? rank + 1 : 0;
        const Place above = parent < 0 ? Place{0, true, 0} : places_[size_t(parent)];
        places_[size_t(i)] = child(above, rank);
        candidate.value = candidate.log_prob = log_prob(above, rank);
        if (parent >= 0) candidate.value += table[size_t(parent)].value;
    }
    table_.assign(table.begin(), table.begin() + last);
}

NodeList ForcedAcceptance::choices(const TokenTree& tree) {
    NodeList choices;  // they matter only on the true path
    choices.resize(size_t(tree.size()));
    int on_path = 0, entry = -1;  // the newest true node, and its table entry
    choices[0] = choice_below(entry);
    put_out_ = 1;
    for (int node = 1; node < tree.size(); ++node) {
        if (tree.parents[size_t(node)] != on_path ||
            tree.tokens[size_t(node)] != choices[size_t(on_path)])
            continue;
        const int token = tree.tokens[size_t(node)];
        const auto child =
            std::find_if(table_.begin(), table_.end(), [&](const Candidate& candidate) {
                return candidate.parent == entry && candidate.token == token;
            });
        entry = int(child - table_.begin());
        on_path = node;
        choices[size_t(node)] = choice_below(entry);
        ++put_out_;
    }
    put_out_ = std::min(put_out_, int(recorded_.texts[text_].size()) - position_);
    table_.clear();
    go_to(text_, position_ + put_out_);
    return choices;
}

// The true token below a table entry (-1: the root), or else a token that is no candidate there.
int ForcedAcceptance::choice_below(int entry) const {
    FixedVector<int, kMaxTopK> candidates;
    for (size_t i = 0; i < table_.size(); ++i) {
        if (table_[i].parent != entry) continue;
        if (places_[i].is_true) return table_[i].token;
        candidates.push_back(table_[i].token);
    }
    int other = 0;
    while (std::count(candidates.begin(), candidates.end(), other)) ++other;
    return other;
}

TokenTree ForcedAcceptance::tree(const TreeShape& shape) {
    std::vector<Candidate> table;
    std::vector<int> parents = {-1};
    for (int level = 0; level < shape.levels; ++level) {
        const int first = int(table.size());
        for (int parent : parents)
            for (int rank = 0; rank < shape.top_k; ++rank) table.push_back({rank, parent, 0, 0});
        this->level(table, first, int(table.size()));
        Frontier frontier;
        best_frontier(table, first, shape.top_k, frontier);
        parents.clear();
        for (int number : frontier) parents.push_back(first + number);
    }
    return tree_of(table, best_entries(table, 0, int(table.size()), shape.nodes - 1), 0);
}

double ForcedAcceptance::tau(const TreeShape& shape) {
    restart();
    int64_t tokens = 0, cycles = 0;
    do {
        choices(tree(shape));
        tokens += put_out_;
        ++cycles;
    } while (!begins());
    return double(tokens) / double(cycles);
}

void ForcedAcceptance::rescale(double wanted) {
    double low = -1, high = 1;
    const auto tau_at = [&](double shift) {
        shift_ = shift;
        return tau(kPaperShape);
    };
    if (!(wanted >= tau_at(low)) || !(wanted <= tau_at(high)))
        throw UsageError("an acceptance length of " + std::to_string(wanted) +
                         " cannot be had of this record");
    for (int step = 0; step < 20; ++step) {
        const double middle = (low + high) / 2;
        (tau_at(middle) < wanted ? low : high) = middle;
    }
    shift_ = high;
    restart();
}

}  // namespace aerie
