// The expansion is a sequence of backend ops; nothing comes back to the host before the whole
// table.
#include "draft/grow.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/ops.h"

namespace aerie {

std::vector<int> level_offsets(const Expansion& expansion) {
    std::vector<int> offsets = {0, expansion.top_k};
    for (const Level& level : expansion.levels)
        offsets.push_back(offsets.back() + level.width * expansion.top_k);
    return offsets;
}

Expansion dynamic_expansion(const TreeShape& shape, bool sum_values) {
    Expansion expansion{shape.top_k, {}, sum_values};
    expansion.levels.assign(size_t(shape.levels) - 1, Level{shape.top_k, {}});
    return expansion;
}

TokenTree tree_of(const std::vector<Candidate>& table, std::vector<int> kept, int pending) {
    TokenTree tree(pending);
    std::vector<int> node_of(table.size(), -1);
    for (int index : kept) {
        const Candidate& candidate = table[size_t(index)];
        const int parent = candidate.parent < 0 ? 0 : node_of[size_t(candidate.parent)];
        if (parent < 0) continue;
        node_of[size_t(index)] = tree.size();
        tree.add(candidate.token, parent);
    }
    return tree;
}

std::vector<int> best_entries(const std::vector<Candidate>& table, int first, int last, int count) {
    std::vector<int> entries;
    for (int i = first; i < last; ++i)
        if (table[size_t(i)].value > -std::numeric_limits<float>::infinity()) entries.push_back(i);
    count = std::min(count, int(entries.size()));
    std::partial_sort(entries.begin(), entries.begin() + count, entries.end(), [&](int a, int b) {
        const float x = table[size_t(a)].value, y = table[size_t(b)].value;
        return x != y ? x > y : a < b;
    });
    entries.resize(size_t(count));
    std::sort(entries.begin(), entries.end());
    return entries;
}

void GrowScratch::add_to(TensorPlan& plan, const GrowLimits& limits, int hidden_size, int vocab) {
    plan.add(logits, DType::F32, limits.width, vocab);
    plan.add(hidden, DType::F32, limits.width, hidden_size);
    plan.add(features, DType::F32, limits.width, hidden_size);
    plan.add(ids, DType::I32, limits.width, limits.top_k);
    plan.add(log_probs, DType::F32, limits.width, limits.top_k);
    plan.add(table, DType::I32, limits.candidates, kCandidateInts);
    plan.add(frontier, DType::I32, 1, limits.width);
    plan.add(parent_row, DType::I32, 1, limits.width);
    plan.add(selection, DType::I32, 1, limits.width);
    for (Tensor& block : rows) plan.add(block, DType::I32, limits.width, kRowInts);
}

TreeGrower::TreeGrower(Backend& be, EagleHead& head, const GrowLimits& limits, Proposals proposals)
    : be_(be), head_(head), proposals_(proposals) {
    const ModelConfig& config = head.target().config();
    TensorPlan plan;
    scratch_.add_to(plan, limits, config.hidden, config.vocab);
    memory_ = plan.allocate(be);
}

std::vector<Candidate> TreeGrower::expand(const Expansion& expansion, Tensor last_hidden,
                                          Rows last_row, const DraftContext& context) {
    Tensor hidden = last_hidden;
    Rows rows = last_row;
    for (size_t level = 0;; ++level) {
        rank(hidden, context, int(level), expansion.top_k);
        const Rows next = select(expansion, level, rows);
        if (next.count() == 0) break;
        const Tensor features = scratch_.features.row_range(0, next.count());
        gather_rows(be_, features, hidden, scratch_.parent_row.col_range(0, next.count()));
        hidden = scratch_.hidden.row_range(0, next.count());
        head_.forward(hidden, features, next);
        rows = next;
    }
    std::vector<Candidate> table(size_t(level_offsets(expansion).back()));
    be_.read(scratch_.table.row_range(0, int(table.size())), table.data());
    return table;
}

// The k best candidates of each row of `hidden`, into scratch ids and log_probs.
void TreeGrower::rank(Tensor hidden, const DraftContext& context, int level, int k) {
    const int rows = hidden.rows;
    TopKStep step;
    step.choice.logits = scratch_.logits.row_range(0, rows);
    head_.logits(step.choice.logits, hidden);
    if (proposals_ == Proposals::coupled) {
        step.choice.filters = context.filters;
        step.choice.edits = context.edits;
        if (context.noise) step.noise = context.noise.row_range(level, 1);
    }
    step.softness = kCoupledSoftness;
    step.ids = dense_prefix(scratch_.ids, rows, k);
    step.log_probs = dense_prefix(scratch_.log_probs, rows, k);
    top_k(be_, step);
}

// Appends the level's candidates to the table and returns the rows of the next one (none at the
// end).
Rows TreeGrower::select(const Expansion& expansion, size_t level, Rows rows) {
    const bool last = level == expansion.levels.size();
    const int width = last ? 0 : expansion.levels[level].width;
    BeamStep step;
    step.ids = dense_prefix(scratch_.ids, rows.count(), expansion.top_k);
    step.log_probs = dense_prefix(scratch_.log_probs, rows.count(), expansion.top_k);
    step.rows = rows;
    step.frontier = scratch_.frontier;
    step.table = scratch_.table;
    step.parent_row = scratch_.parent_row.col_range(0, width);
    step.next = {scratch_.rows[level % 2].row_range(0, width)};
    step.from_root = level == 0;
    step.sum_values = expansion.sum_values;
    step.table_offset = level_offsets(expansion)[level];
    for (size_t i = 0; i < level; ++i) step.next_slot += expansion.levels[i].width;
    if (!last && !expansion.levels[level].selection.empty()) {
        step.selection = scratch_.selection.col_range(0, width);
        be_.write(step.selection, expansion.levels[level].selection.data());
    }
    beam(be_, step);
    return step.next;
}

}  // namespace aerie
