// Levels as sequences of backend ops. With a known shape nothing is read back before the whole
// table is complete; with a policy each level is read.
#include "draft/trees/tree_grower.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>

namespace aerie {

void GrowScratch::add_to(TensorPlan& plan, const GrowLimits& limits, int state_columns, int vocab) {
    plan.add(logits, DType::F32, limits.width, vocab);
    plan.add(states, DType::F32, limits.width, state_columns);
    plan.add(parents, DType::F32, limits.width, state_columns);
    plan.add(ranked, DType::I32, limits.width, 2 * limits.top_k);
    plan.add(table, DType::I32, limits.candidates, kCandidateInts);
    plan.add(frontier, DType::I32, 1, limits.width);
    plan.add(parent_row, DType::I32, 1, limits.width);
    plan.add(selection, DType::I32, kMaxDepth, limits.width);
    for (Tensor& block : rows) plan.add(block, DType::I32, limits.width, kRowInts);
}

TreeGrower::TreeGrower(Backend& be, LevelModel& model, const GrowLimits& limits,
                       const DraftOptions& options)
    : be_(be),
      model_(model),
      proposals_(options.proposals),
      draws_(options.accept == AcceptRule::ratio),
      sum_values_(options.use_value),
      on_level_(options.on_level) {
    TensorPlan plan;
    scratch_.add_to(plan, limits, model.state_columns(), model.vocab());
    memory_ = plan.allocate(be);
    table_.reserve(size_t(limits.candidates));
    ids_.resize(size_t(limits.width) * size_t(limits.top_k));
    log_probs_.resize(ids_.size());
    ranked_.resize(2 * ids_.size());
    if (!draws_) return;
    logits_.resize(size_t(model.vocab()));
    const Tensor ids = model.target_ids();
    target_ids_.resize(size_t(ids.cols));
    if (ids) be.read(ids, target_ids_.data());
}

std::span<const Candidate> TreeGrower::expand(const ExpansionPlan& expansion, const TreeStart& end,
                                              const DraftRequest& request) {
    const size_t levels = expansion.levels.size();
    const bool drawn = draws(request);
    if (is_coupled(request)) request.noise->rows(be_, int(levels) + 1);  // make all rows at once
    if (on_level_ || drawn) {
        size_t done = 0;
        const auto choose = [&](std::span<const Candidate> table, int first, Frontier& frontier) {
            if (done == levels) return;
            const LevelPlan& level = expansion.levels[done++];
            if (level.selection.empty()) return best_frontier(table, first, level.width, frontier);
            for (int32_t number : level.selection) frontier.push_back(number);
        };
        return grow(std::ref(choose), expansion.top_k, end, request);
    }
    write_selections(expansion);
    const auto record = [&] { run_levels(expansion, end, request); };
    be_.replay(key_of(expansion, end, request), std::ref(record));
    int rows = 1;
    for (const LevelPlan& level : expansion.levels) rows += level.width;
    table_.resize(size_t(rows) * size_t(expansion.top_k));
    be_.read(scratch_.table.row_range(0, int(table_.size())), table_.data());
    return table_;
}

void TreeGrower::write_selections(const ExpansionPlan& expansion) {
    for (size_t level = 0; level < expansion.levels.size(); ++level)
        if (const auto& selection = expansion.levels[level].selection; !selection.empty())
            be_.write(scratch_.selection.row_range(int(level), 1)
                          .col_range(0, expansion.levels[level].width),
                      selection.data());
}

// Hashes everything that recordings for a request have fixed.
uint64_t TreeGrower::key_of(const TreeStart& end, const DraftRequest& request, int top_k) const {
    const Rules& rules = request.rules;
    const uint64_t weights = model_.weights() ? model_.weights()->number() : 0;
    return replays_.of({weights, end.state.offset_bytes, end.rows.block.offset_bytes,
                        uint64_t(top_k), request.noise != nullptr, rules.block.offset_bytes,
                        bool(rules.seen), rules.top_k, rules.top_p});
}

uint64_t TreeGrower::key_of(const ExpansionPlan& expansion, const TreeStart& end,
                            const DraftRequest& request) const {
    uint64_t key = replays_.of({key_of(end, request, expansion.top_k), expansion.sum_values});
    for (const LevelPlan& level : expansion.levels)
        key = replays_.of({key, uint64_t(level.width), level.selection.empty()});
    return key;
}

void TreeGrower::run_levels(const ExpansionPlan& expansion, const TreeStart& end,
                            const DraftRequest& request) {
    Tensor states = end.state;
    Rows rows = end.rows;
    Beam step;
    for (size_t level = 0;; ++level) {
        const Tensor noise = is_coupled(request)
                                 ? request.noise->rows(be_, int(level) + 1).row_range(int(level), 1)
                                 : Tensor{};
        rank(states, request, noise, int(level), expansion.top_k);
        const Rows next = select(expansion, level, rows, step);
        step.table_offset += rows.count() * expansion.top_k;
        step.next_slot += next.count();
        if (next.count() == 0) break;
        const Tensor out = scratch_.states.row_range(0, next.count());
        run(out, states, next, int(level) + 1);
        states = out;
        rows = next;
    }
}

std::span<const Candidate> TreeGrower::grow(const ChooseFrontier& choose, int top_k,
                                            const TreeStart& end, const DraftRequest& request) {
    table_.clear();
    rows_ = {end.row};
    Tensor states = end.state, parents;
    Rows rows = end.rows;
    Frontier frontier;
    std::optional<KeyedChance> chance;
    if (draws(request))
        chance.emplace(request.drawn->seed, request.drawn->position, Purpose::draft);
    const uint64_t request_key = key_of(end, request, top_k);
    for (int level = 0, first = -1;; ++level) {
        const Tensor noise = is_coupled(request) ? request.noise->row(be_, level) : Tensor{};
        const auto pass = [&] {
            if (level > 0) run(states, parents, rows, level);
            if (chance)
                model_.logits(scratch_.logits.row_range(0, states.rows), states, level);
            else
                rank(states, request, noise, level, top_k);
        };
        be_.replay(replays_.of({request_key, kind_of(level), uint64_t(states.rows), bool(chance)}),
                   std::ref(pass));
        if (chance)
            draw(frontier, first, top_k, *request.drawn, *chance);
        else
            read_ranked(top_k);
        first = append_level(frontier, first, top_k);
        if (on_level_) on_level_(table_, first, int(table_.size()));
        frontier.clear();
        choose(table_, first, frontier);
        if (frontier.empty()) return table_;
        rows = extend(frontier, first, top_k);
        parents = level == 0 ? states : scratch_.states;  // no recording depends on their number
        states = scratch_.states.row_range(0, rows.count());
    }
}

// Returns a number that is equal for levels with the same recording: levels 0 and 1 read other
// states than the later ones.
uint64_t TreeGrower::kind_of(int level) const {
    return uint64_t(model_.differs_by_level() ? level : std::min(level, 2));
}

// Runs the model over `rows`. scratch parent_row says which of the rows of `states` is the parent
// of each.
void TreeGrower::run(Tensor out, Tensor states, Rows rows, int level) {
    const ParentStates parents{states, scratch_.parent_row.col_range(0, rows.count()),
                               scratch_.parents.row_range(0, rows.count())};
    model_.forward(out, parents, rows, level);
}

// Ids and log-probabilities are side by side in one tensor, so that one read brings both.
Tensor TreeGrower::ids(int rows, int k) const {
    return dense_prefix(scratch_.ranked, rows, 2 * k).col_range(0, k);
}
Tensor TreeGrower::log_probs(int rows, int k) const {
    Tensor log_probs = dense_prefix(scratch_.ranked, rows, 2 * k).col_range(k, k);
    log_probs.dtype = DType::F32;
    return log_probs;
}

// Reads the candidates of the level that was ranked last.
void TreeGrower::read_ranked(int k) {
    const int count = int(rows_.size());
    be_.read(dense_prefix(scratch_.ranked, count, 2 * k), ranked_.data());
    for (int i = 0; i < count * k; ++i) {
        const int32_t* pair = &ranked_[size_t(i / k * 2 * k + i % k)];
        ids_[size_t(i)] = pair[0];
        log_probs_[size_t(i)] = std::bit_cast<float>(pair[k]);
    }
}

// Appends the candidates of a level to the table: the children of `frontier`, which are numbers in
// the level that begins at `first` (-1: the root's children). Returns the index at which they
// begin.
int TreeGrower::append_level(const Frontier& frontier, int first, int top_k) {
    const int count = int(rows_.size()), begin = int(table_.size());
    for (int i = 0; i < count * top_k; ++i) {
        Candidate candidate{ids_[size_t(i)], -1, log_probs_[size_t(i)], log_probs_[size_t(i)]};
        if (first >= 0) {
            candidate.parent = first + frontier[size_t(i / top_k)];
            if (sum_values_) candidate.value += table_[size_t(candidate.parent)].value;
        }
        table_.push_back(candidate);
    }
    return begin;
}

// Makes the rows of this frontier, on the host and on the device, and records the parent row of
// each.
Rows TreeGrower::extend(const Frontier& frontier, int first, int top_k) {
    const int width = int(frontier.size());
    const bool from_text = first == 0;
    // The rows of a level follow those of earlier levels; each row has made top_k candidates.
    const int next_slot = from_text ? 0 : first / top_k - 1 + int(rows_.size());
    FixedVector<Row, kMaxFrontier> next;
    Frontier parents;
    for (int i = 0; i < width; ++i) {
        const int number = frontier[size_t(i)], parent = number / top_k;
        parents.push_back(parent);
        next.push_back(child_row(rows_[size_t(parent)], from_text,
                                 model_.token_of(table_[size_t(first + number)].token),
                                 next_slot + i));
    }
    rows_ = next;
    if (be_.capabilities().records) {
        const int count = recorded_rows(width, scratch_.states.rows);
        while (int(next.size()) < count) next.push_back(kPaddingRow), parents.push_back(0);
    }
    const int count = int(next.size());
    const Rows rows{scratch_.rows[0].row_range(0, count)};
    be_.write(scratch_.parent_row.col_range(0, count), parents.data());
    be_.write(rows.block, next.data());
    return rows;
}

// Ranks the k best candidates of each row of `states`, into scratch ids and log_probs.
void TreeGrower::rank(Tensor states, const DraftRequest& request, Tensor noise, int level, int k) {
    const int rows = states.rows;
    TopK step;
    step.choice.logits = scratch_.logits.row_range(0, rows);
    model_.logits(step.choice.logits, states, level);
    if (proposals_ == Proposals::coupled) {
        step.choice.rules = request.rules;
        step.noise = noise;
    }
    step.choice.id_map = model_.target_ids();
    step.ids = ids(rows, k);
    step.log_probs = log_probs(rows, k);
    be_.run(step);
}

// Appends the level's candidates to the table and returns the rows of the next level, none at the
// end. The offsets in `step` carry over from level to level.
Rows TreeGrower::select(const ExpansionPlan& expansion, size_t level, Rows rows, Beam& step) {
    const bool last = level == expansion.levels.size();
    const int width = last ? 0 : expansion.levels[level].width;
    step.ids = ids(rows.count(), expansion.top_k);
    step.log_probs = log_probs(rows.count(), expansion.top_k);
    step.rows = rows;
    step.frontier = scratch_.frontier;
    step.table = scratch_.table;
    step.parent_row = scratch_.parent_row.col_range(0, width);
    step.next = {scratch_.rows[level % 2].row_range(0, width)};
    step.from_root = level == 0;
    step.sum_values = expansion.sum_values;
    step.selection = {};
    if (!last && !expansion.levels[level].selection.empty()) {
        step.selection = scratch_.selection.row_range(int(level), 1).col_range(0, width);
    }
    be_.run(step);
    return step.next;
}

// Tokens on the path to this table entry, its own first; none for -1.
PathTokens TreeGrower::path_of(int entry) const {
    PathTokens path;
    for (; entry >= 0; entry = table_[size_t(entry)].parent)
        path.push_back(table_[size_t(entry)].token);
    return path;
}

// Draws k candidates for each row of the level with computed logits, in the layout of append_level.
// If fewer can be drawn, the remaining candidates have value -inf.
void TreeGrower::draw(const Frontier& frontier, int first, int k, Drawn& drawn, Chance& chance) {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    const size_t count = rows_.size() * size_t(k);
    std::fill_n(ids_.begin(), count, 0);
    std::fill_n(log_probs_.begin(), count, kNever);
    for (size_t row = 0; row < rows_.size(); ++row) {
        const int entry = first < 0 ? -1 : first + frontier[row];
        if (entry >= 0 && table_[size_t(entry)].log_prob == kNever) continue;
        be_.read(scratch_.logits.row_range(int(row), 1), logits_.data());
        Distribution q = processed(logits_, drawn.rule, path_of(entry), target_ids_);
        size_t at = row * size_t(k);
        for (int token : aerie::draw(q, k, chance)) {
            ids_[at] = token;
            log_probs_[at++] = float(std::log(q.of(token)));
        }
        if (!q.empty()) drawn.parents.push_back({entry, std::move(q)});
    }
}

}  // namespace aerie
