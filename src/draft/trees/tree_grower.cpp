// Levels as sequences of backend ops. With a known shape nothing is read back before the whole
// table is complete; with a policy each level is read.
#include "draft/trees/tree_grower.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>

namespace aerie {

void GrowScratch::add_to(TensorPlan& plan, const GrowLimits& limits, int state_columns, int vocab) {
    const int rows = limits.rows();
    plan.add(logits, DType::F32, rows, vocab);
    plan.add(states, DType::F32, rows, state_columns);
    plan.add(parents, DType::F32, rows, state_columns);
    if (limits.together > 1) plan.add(roots, DType::F32, limits.together, state_columns);
    plan.add(ranked, DType::I32, rows, 2 * limits.top_k);
    plan.add(table, DType::I32, limits.candidates, kCandidateInts);
    plan.add(frontier, DType::I32, 1, limits.width);
    plan.add(parent_row, DType::I32, 1, rows);
    plan.add(selection, DType::I32, kMaxDepth, limits.width);
    for (Tensor& block : this->rows) plan.add(block, DType::I32, rows, kRowInts);
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
    growing_.resize(size_t(limits.together));
    for (Growing& tree : growing_) tree.table.reserve(size_t(limits.candidates));
    rows_.reserve(size_t(limits.rows()));
    parents_.reserve(size_t(limits.rows()));
    ids_.resize(size_t(limits.rows()) * size_t(limits.top_k));
    log_probs_.resize(ids_.size());
    ranked_.resize(2 * ids_.size());
    if (!draws_) return;
    logits_.resize(size_t(model.vocab()));
    const Tensor ids = model.target_ids();
    target_ids_.resize(size_t(ids.cols));
    if (ids) be.read(ids, target_ids_.data());
}

void FollowPlan::operator()(std::span<const Candidate> table, int first, Frontier& frontier) {
    if (done == plan->levels.size()) return;
    const LevelPlan& level = plan->levels[done++];
    if (level.selection.empty()) return best_frontier(table, first, level.width, frontier);
    for (int32_t number : level.selection) frontier.push_back(number);
}

std::span<const Candidate> TreeGrower::expand(const ExpansionPlan& expansion, const TreeStart& end,
                                              const DraftRequest& request) {
    const size_t levels = expansion.levels.size();
    const bool drawn = draws(request);
    if (is_coupled(request)) request.noise->rows(be_, int(levels) + 1);  // make all rows at once
    if (on_level_ || drawn) {
        FollowPlan follow{&expansion};
        const TreeToGrow tree{&request, end, std::ref(follow)};
        grow({&tree, 1}, expansion.top_k);
        return table();
    }
    write_selections(expansion);
    const auto record = [&] { run_levels(expansion, end, request); };
    be_.replay(key_of(expansion, end, request), std::ref(record));
    int rows = 1;
    for (const LevelPlan& level : expansion.levels) rows += level.width;
    std::vector<Candidate>& table = growing_[0].table;
    table.resize(size_t(rows) * size_t(expansion.top_k));
    be_.read(scratch_.table.row_range(0, int(table.size())), table.data());
    return table;
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
        model_.logits(scratch_.logits.row_range(0, states.rows), states, int(level), 1);
        rank(0, states.rows, request, noise, expansion.top_k);
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

void TreeGrower::grow(std::span<const TreeToGrow> trees, int top_k) {
    begin(trees);
    const bool is_alone = trees.size() == 1;
    const uint64_t key = is_alone ? key_of(trees[0].start, *trees[0].request, top_k) : 0;
    Tensor states = roots(trees), parents;
    Rows rows = trees[0].start.rows;
    for (int level = 0;; ++level) {
        make_noise(trees, level);
        const auto pass = [&] {
            if (level > 0) run(states, parents, rows, level);
            model_.logits(scratch_.logits.row_range(0, states.rows), states, level,
                          int(trees.size()));
            rank_all(trees, states.rows, top_k);
        };
        if (is_alone)
            be_.replay(replays_.of({key, kind_of(level), uint64_t(states.rows),
                                    growing_[0].chance.has_value()}),
                       std::ref(pass));
        else
            pass();  // the shapes of several trees' levels seldom recur
        if (!go_on(trees, top_k)) return;
        rows = write_rows();
        parents = level == 0 ? states : scratch_.states;  // no recording depends on their number
        states = scratch_.states.row_range(0, rows.count());
    }
}

void TreeGrower::begin(std::span<const TreeToGrow> trees) {
    for (size_t i = 0; i < trees.size(); ++i) {
        Growing& tree = growing_[i];
        tree.table.clear();
        tree.frontier.clear();
        tree.rows = {trees[i].start.row};
        tree.first = -1;
        tree.offset = int(i);
        tree.is_over = false;
        tree.chance.reset();
        if (const DraftRequest& request = *trees[i].request; draws(request))
            tree.chance.emplace(request.drawn->seed, request.drawn->position, Purpose::draft);
    }
    row_count_ = int(trees.size());
}

// The states at which the trees begin, in one tensor.
Tensor TreeGrower::roots(std::span<const TreeToGrow> trees) {
    if (trees.size() == 1) return trees[0].start.state;
    for (size_t i = 0; i < trees.size(); ++i)
        be_.run(Copy{scratch_.roots.row_range(int(i), 1), trees[i].start.state}, "root");
    return scratch_.roots.row_range(0, int(trees.size()));
}

// Noise is made outside of recordings, for it depends on the seed.
void TreeGrower::make_noise(std::span<const TreeToGrow> trees, int level) {
    for (size_t i = 0; i < trees.size(); ++i) {
        const DraftRequest& request = *trees[i].request;
        if (growing_[i].is_over || !is_coupled(request))
            growing_[i].noise = {};
        else if (trees.size() == 1)
            growing_[i].noise = request.noise->row(be_, level);
        else
            growing_[i].noise = request.noise->rows(be_, level + 1).row_range(level, 1);
    }
}

// Ranks the candidates of each tree's rows among the `rows` of the level, unless they are drawn.
void TreeGrower::rank_all(std::span<const TreeToGrow> trees, int rows, int top_k) {
    for (size_t i = 0; i < trees.size(); ++i) {
        const Growing& tree = growing_[i];
        if (tree.is_over || tree.chance) continue;
        const int count = trees.size() == 1 ? rows : int(tree.rows.size());
        rank(tree.offset, count, *trees[i].request, tree.noise, top_k);
    }
}

// Takes the level's candidates into the tables, and lets each tree choose its next rows. False once
// all have ended.
bool TreeGrower::go_on(std::span<const TreeToGrow> trees, int top_k) {
    const auto is_ranked = [](const Growing& tree) { return !tree.is_over && !tree.chance; };
    if (std::any_of(growing_.begin(), growing_.begin() + ptrdiff_t(trees.size()), is_ranked))
        read_ranked(row_count_, top_k);
    rows_.clear();
    parents_.clear();
    for (size_t i = 0; i < trees.size(); ++i) {
        Growing& tree = growing_[i];
        if (tree.is_over) continue;
        if (tree.chance) draw(tree, top_k, *trees[i].request->drawn);
        append_level(tree, top_k);
        if (on_level_)
            on_level_(trees[i].request->state, tree.table, tree.first, int(tree.table.size()));
        tree.frontier.clear();
        trees[i].choose(tree.table, tree.first, tree.frontier);
        tree.is_over = tree.frontier.empty();
        if (!tree.is_over) extend(tree, top_k);
    }
    row_count_ = int(rows_.size());
    return row_count_ > 0;
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
Tensor TreeGrower::ids(int first, int rows, int k) const {
    return dense_prefix(scratch_.ranked, first + rows, 2 * k)
        .row_range(first, rows)
        .col_range(0, k);
}
Tensor TreeGrower::log_probs(int first, int rows, int k) const {
    Tensor log_probs =
        dense_prefix(scratch_.ranked, first + rows, 2 * k).row_range(first, rows).col_range(k, k);
    log_probs.dtype = DType::F32;
    return log_probs;
}

// Reads the candidates of the level that was ranked last.
void TreeGrower::read_ranked(int rows, int k) {
    be_.read(dense_prefix(scratch_.ranked, rows, 2 * k), ranked_.data());
    for (int i = 0; i < rows * k; ++i) {
        const int32_t* pair = &ranked_[size_t(i / k * 2 * k + i % k)];
        ids_[size_t(i)] = pair[0];
        log_probs_[size_t(i)] = std::bit_cast<float>(pair[k]);
    }
}

// Appends the candidates of the level to the tree's table: the children of its frontier, or the
// root's.
void TreeGrower::append_level(Growing& tree, int top_k) {
    const int count = int(tree.rows.size()), begin = int(tree.table.size());
    const size_t at = size_t(tree.offset) * size_t(top_k);
    for (int i = 0; i < count * top_k; ++i) {
        const float log_prob = log_probs_[at + size_t(i)];
        Candidate candidate{ids_[at + size_t(i)], -1, log_prob, log_prob};
        if (tree.first >= 0) {
            candidate.parent = tree.first + tree.frontier[size_t(i / top_k)];
            if (sum_values_) candidate.value += tree.table[size_t(candidate.parent)].value;
        }
        tree.table.push_back(candidate);
    }
    tree.first = begin;
}

// Makes the rows of the tree's frontier, behind those of the trees before it, and records the
// parent row of each.
void TreeGrower::extend(Growing& tree, int top_k) {
    const int width = int(tree.frontier.size());
    const bool from_text = tree.first == 0;
    // The rows of a level follow those of earlier levels; each row has made top_k candidates.
    const int next_slot = from_text ? 0 : tree.first / top_k - 1 + int(tree.rows.size());
    FixedVector<Row, kMaxFrontier> next;
    for (int i = 0; i < width; ++i) {
        const int number = tree.frontier[size_t(i)], parent = number / top_k;
        parents_.push_back(tree.offset + parent);
        next.push_back(child_row(tree.rows[size_t(parent)], from_text,
                                 model_.token_of(tree.table[size_t(tree.first + number)].token),
                                 next_slot + i));
    }
    tree.rows = next;
    tree.offset = int(rows_.size());
    rows_.insert(rows_.end(), next.begin(), next.end());
}

// Writes the rows of the next level to the device.
Rows TreeGrower::write_rows() {
    if (be_.capabilities().records) {
        const size_t count = size_t(recorded_rows(row_count_, scratch_.states.rows));
        rows_.resize(count, kPaddingRow);
        parents_.resize(count, 0);
    }
    const int count = int(rows_.size());
    const Rows rows{scratch_.rows[0].row_range(0, count)};
    be_.write(scratch_.parent_row.col_range(0, count), parents_.data());
    be_.write(rows.block, rows_.data());
    return rows;
}

// Ranks the k best candidates of each of these rows of logits, into scratch ids and log_probs.
void TreeGrower::rank(int first, int rows, const DraftRequest& request, Tensor noise, int k) {
    TopK step;
    step.choice.logits = scratch_.logits.row_range(first, rows);
    if (proposals_ == Proposals::coupled) {
        step.choice.rules = request.rules;
        step.noise = noise;
    }
    step.choice.id_map = model_.target_ids();
    step.ids = ids(first, rows, k);
    step.log_probs = log_probs(first, rows, k);
    be_.run(step);
}

// Appends the level's candidates to the table and returns the rows of the next level, none at the
// end. The offsets in `step` carry over from level to level.
Rows TreeGrower::select(const ExpansionPlan& expansion, size_t level, Rows rows, Beam& step) {
    const bool last = level == expansion.levels.size();
    const int width = last ? 0 : expansion.levels[level].width;
    step.ids = ids(0, rows.count(), expansion.top_k);
    step.log_probs = log_probs(0, rows.count(), expansion.top_k);
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

// Tokens on the path to this entry of the tree's table, its own first; none for -1.
PathTokens TreeGrower::path_of(const Growing& tree, int entry) {
    PathTokens path;
    for (; entry >= 0; entry = tree.table[size_t(entry)].parent)
        path.push_back(tree.table[size_t(entry)].token);
    return path;
}

// Draws k candidates for each row of the tree's level with computed logits, in the layout of
// append_level. If fewer can be drawn, the remaining candidates have value -inf.
void TreeGrower::draw(Growing& tree, int k, Drawn& drawn) {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    const size_t begin = size_t(tree.offset) * size_t(k), count = tree.rows.size() * size_t(k);
    std::fill_n(ids_.begin() + ptrdiff_t(begin), count, 0);
    std::fill_n(log_probs_.begin() + ptrdiff_t(begin), count, kNever);
    for (size_t row = 0; row < tree.rows.size(); ++row) {
        const int entry = tree.first < 0 ? -1 : tree.first + tree.frontier[row];
        if (entry >= 0 && tree.table[size_t(entry)].log_prob == kNever) continue;
        be_.read(scratch_.logits.row_range(tree.offset + int(row), 1), logits_.data());
        Distribution q = processed(logits_, drawn.rule, path_of(tree, entry), target_ids_);
        size_t at = begin + row * size_t(k);
        for (int token : aerie::draw(q, k, *tree.chance)) {
            ids_[at] = token;
            log_probs_[at++] = float(std::log(q.of(token)));
        }
        if (!q.empty()) drawn.parents.push_back({entry, std::move(q)});
    }
}

}  // namespace aerie
