// Observing stores features; reading runs the model over them, in passes of at most pass_rows rows.
#include "draft/trees/tree_drafter.h"

#include <algorithm>

#include "core/error.h"

namespace aerie {

namespace {

constexpr int kBacklogRows = 64;  // features of some cycles; part of a prompt has further rows
// The newest rows of a full backlog are copied to its beginning, within one buffer. The two ranges
// must not overlap, since a device may copy all rows at the same time.
static_assert(kBacklogRows >= 2 * kWindow);

}  // namespace

Growth chain_growth(const DraftOptions& options) {
    constexpr int kPublished = 5;
    if (options.chain_length || !options.cuts_fixed_trees()) {
        const int length = options.chain_length.value_or(kPublished);
        return {{}, {length + 1, length, 1}};
    }
    constexpr int kRanked = 4;  // the softness of coupled proposals is learned from siblings
    const int most = kMaxAuto.levels;
    return {chain_paths(most), {most + 1, most, kRanked}, true};
}

Growth static_growth(const DraftOptions& options) {
    const TreePaths& paths = options.static_tree ? *options.static_tree : default_static_tree();
    if (options.static_tree || !options.cuts_fixed_trees()) return {paths, {}};
    TreeShape shape{int(paths.size()) + 1, 0, 0};
    for (const std::vector<int>& path : paths) {
        shape.levels = std::max(shape.levels, int(path.size()));
        shape.top_k = std::max(shape.top_k, path.back() + 1);
    }
    return {paths, shape, true};
}

// Ablations use the tree of the paper.
Growth dynamic_growth(const DraftOptions& options) {
    if (options.tree) return {{}, *options.tree};
    if (options.is_published) return {{}, TreeShape{}};
    const bool is_chosen = options.use_value && options.rerank;
    return {{}, is_chosen ? kMaxAuto : TreeShape{}, is_chosen};
}

Growth grafted_growth(const DraftOptions& options) {
    return {{}, options.tree.value_or(kMaxAuto), true, true};
}

Growth within(Growth growth, int levels) {
    std::erase_if(growth.paths, [=](const auto& path) { return int(path.size()) > levels; });
    growth.shape.levels = std::min(growth.shape.levels, levels);
    return growth;
}

TreeDrafterLimits reach_of(const Growth& growth, int together) {
    const bool is_static = !growth.paths.empty() && !growth.is_chosen;
    TreeDrafterLimits reach = is_static ? static_reach(growth.paths) : dynamic_reach(growth.shape);
    reach.grow.together = std::clamp(together, 1, kMostGrown);
    return reach;
}

void TreeDrafterTensors::add_to(TensorPlan& plan, int state_columns, int feature_columns,
                                int pass_rows) {
    plan.add(backlog, DType::F32, kBacklogRows + pass_rows, feature_columns);
    plan.add(rows, DType::I32, pass_rows, kRowInts);
    plan.add(states, DType::F32, pass_rows, state_columns);
}

void SharedPassTensors::add_to(TensorPlan& plan, int state_columns, int feature_columns,
                               int pass_rows) {
    plan.add(features, DType::F32, pass_rows, feature_columns);
    plan.add(rows, DType::I32, pass_rows, kRowInts);
    plan.add(states, DType::F32, pass_rows, state_columns);
}

size_t tree_drafter_bytes(const DraftPlan& plan, const TreeDrafterLimits& reach, int state_columns,
                          int feature_columns, int vocab) {
    GrowScratch scratch;
    TensorPlan tensors;
    scratch.add_to(tensors, reach.grow, state_columns, vocab);
    SharedPassTensors shared;
    if (plan.together > 1) shared.add_to(tensors, state_columns, feature_columns, plan.pass_rows);
    std::vector<TreeDrafterTensors> of_sequences(size_t(plan.sequences));
    for (TreeDrafterTensors& of_sequence : of_sequences)
        of_sequence.add_to(tensors, state_columns, feature_columns, plan.pass_rows);
    return tensors.size_bytes();
}

TreeDrafter::TreeDrafter(const DraftSource& source, Parts parts)
    : TreeDrafter(source, Parts{std::move(parts.model), std::move(parts.taps), parts.growth},
                  reach_of(parts.growth, source.plan.together)) {}

TreeDrafter::TreeDrafter(const DraftSource& source, Parts parts, const TreeDrafterLimits& reach)
    : be_(source.backend),
      model_(std::move(parts.model)),
      taps_(std::move(parts.taps)),
      reach_(reach),
      pass_rows_(source.plan.pass_rows),
      grower_(be_, *model_, reach_.grow, source.plan.options),
      tensors_(size_t(source.plan.sequences)) {
    if (reach_.grow.top_k > model_->vocab())
        throw UsageError("a vocabulary of " + std::to_string(model_->vocab()) + " has no " +
                         std::to_string(reach_.grow.top_k) + " candidates");
    TensorPlan plan;
    for (TreeDrafterTensors& of_sequence : tensors_)
        of_sequence.add_to(plan, model_->state_columns(), model_->feature_columns(), pass_rows_);
    if (reach_.grow.together > 1)
        shared_.add_to(plan, model_->state_columns(), model_->feature_columns(), pass_rows_);
    memory_ = plan.allocate(be_);
    rows_.reserve(size_t(pass_rows_));
}

std::unique_ptr<TreeDrafter::State> TreeDrafter::make_state(KvPages pages, const State*) const {
    return std::make_unique<State>(*this, std::move(pages));
}

std::unique_ptr<DraftState> TreeDrafter::begin() {
    return make_state(model_->kv().begin(), nullptr);
}

TreeDrafter::State::State(const TreeDrafter& of, KvPages held)
    : drafter(of), pages(std::move(held)) {
    softness.begin(of.reach_.grow.candidates);
}

int TreeDrafter::State::positions() const {
    return drafter.model_->feature_columns() > 0 ? read + waiting : INT_MAX;
}

void TreeDrafter::State::truncate(int positions) {
    if (positions == 0) softness.begin(drafter.reach_.grow.candidates);
    // A row needs the token at its position + token_lead(), so fewer rows than tokens may stay.
    const int rows = std::max(0, positions - drafter.model_->token_lead());
    waiting = std::clamp(rows - read, 0, waiting);
    if (rows >= read) return;
    first = std::min(first, rows);
    read = first + pages.truncate(rows - first);
}

std::unique_ptr<DraftState> TreeDrafter::State::fork(int positions) const {
    const int wanted = positions - drafter.model_->token_lead();
    const int rows = std::clamp(wanted, first, read);
    auto other = drafter.make_state(pages.fork(rows - first), this);
    other->first = first;
    other->softness = softness;
    other->read = rows;
    other->waiting = std::clamp(wanted - read, 0, waiting);
    const auto backlog = [&](const State& state) {
        return drafter.tensors_[size_t(state.pages.sequence())].backlog.row_range(0,
                                                                                  other->waiting);
    };
    copy_rows(drafter.be_, backlog(*other), backlog(*this));
    return other;
}

void TreeDrafter::State::save(SaveSink& to) const {
    for (int count : {first, read, waiting}) to.value(int32_t(count));
    pages.save(to, read - first);
    const Tensor backlog = drafter.tensors_[size_t(pages.sequence())].backlog;
    save_rows(drafter.be_, backlog.row_range(0, waiting), to);
    softness.save(to);
}

void TreeDrafter::State::load(SaveSource& from) {
    const Tensor backlog = drafter.tensors_[size_t(pages.sequence())].backlog;
    const int slots = pages.most_slots() - drafter.reach_.draft_slots;
    first = from.value<int32_t>(0, INT_MAX / 2, "where the drafts begin");
    read = from.value<int32_t>(first, first + slots, "what the drafter knows");
    waiting = from.value<int32_t>(0, backlog.rows, "what the drafter has not read");
    pages.load(from, read - first);
    load_rows(drafter.be_, backlog.row_range(0, waiting), from);
    softness.load(from);
}

void TreeDrafter::observe(const Observed& observed) {
    const int count = observed.features.rows;
    State& state = static_cast<State&>(observed.state);
    if (observed.features.cols == 0) return;
    if (observed.first != state.positions()) {  // the positions between were never observed
        state.first = state.read = observed.first;
        state.waiting = 0;
    }
    const Tensor backlog = tensors_[size_t(state.pages.sequence())].backlog;
    if (state.waiting + count > backlog.rows) make_room(state, observed);
    be_.run(Copy{backlog.row_range(state.waiting, count), observed.features});
    state.waiting += count;
}

void TreeDrafter::make_room(State& state, const Observed& observed) {
    if (observed.is_prompt && reads_prompt(state)) {
        read(state, observed.tokens, state.waiting, 0);
        return;
    }
    const int first = keep_newest(state, std::min(state.waiting, kWindow));
    const Tensor backlog = tensors_[size_t(state.pages.sequence())].backlog;
    be_.run(Copy{backlog.row_range(0, state.waiting), backlog.row_range(first, state.waiting)});
}

// Drops all but the newest `count` waiting features; the model's text begins anew there. Returns
// the row of the backlog at which these features begin.
int TreeDrafter::keep_newest(State& state, int count) {
    const int dropped = state.waiting - count;
    state.first = state.read += dropped;
    state.waiting = count;
    return dropped;
}

int TreeDrafter::backlog(const DraftRequest& request) const {
    const State& state = static_cast<const State&>(request.state);
    return int(request.tokens.size()) - model_->token_lead() - state.read;
}

int TreeDrafter::to_read(const DraftRequest& request, int window) const {
    const int waiting = static_cast<const State&>(request.state).waiting;
    return backlog(request) - std::max(0, waiting - window);
}

void TreeDrafter::catch_up(const DraftRequest& request, int window) {
    State& state = static_cast<State&>(request.state);
    const int first = state.waiting > window ? keep_newest(state, window) : 0;
    read(state, request.tokens, backlog(request), first);
}

// Runs the model over the next `count` positions, with features from this row of the backlog on.
void TreeDrafter::read(State& state, std::span<const int> tokens, int count, int backlog_row) {
    for (int done = 0, rows; done < count; done += rows) {
        rows = std::min(count - done, pass_rows_);
        run_pass(state, tokens, rows, backlog_row + done);
    }
    state.waiting = 0;
}

void TreeDrafter::run_pass(State& state, std::span<const int> tokens, int count, int backlog_row) {
    const TreeDrafterTensors& t = tensors_[size_t(state.pages.sequence())];
    state.pages.hold(state.read - state.first + count);
    rows_.clear();
    for (int i = 0; i < count; ++i) rows_.push_back(text_row(state, tokens, i));
    // The newest position is always in the last row, since recordings contain its address.
    const int first = pass_rows_ - count;
    const Rows block{t.rows.row_range(first, count)};
    be_.write(block.block, rows_.data());
    const Tensor features =
        model_->feature_columns() > 0 ? t.backlog.row_range(backlog_row, count) : Tensor{};
    model_->read(t.states.row_range(first, count), features, block);
    state.read += count;
    state.last = rows_.back();
}

// The row of the i-th position that the model has not read.
Row TreeDrafter::text_row(const State& state, std::span<const int> tokens, int i) const {
    return causal_row(model_->token_of(tokens[size_t(state.read + i + model_->token_lead())]),
                      state.read + i - state.first, state.pages.sequence());
}

// Each sequence's newest positions are read in a pass of all; what does not fit there, before it.
void TreeDrafter::catch_up_all(std::span<const Wanted> wanted, int window) {
    if (wanted.size() == 1) return catch_up(*wanted[0].request, window);
    const int most = pass_rows_ / kMostGrown;
    FixedVector<Stretch, kMostGrown> stretches;
    for (const Wanted& tree : wanted) {
        State& state = static_cast<State&>(tree.request->state);
        Stretch stretch{&state, tree.request->tokens, 0, 0};
        if (state.waiting > window) stretch.backlog_row = keep_newest(state, window);
        stretch.count = backlog(*tree.request);
        for (int rows; stretch.count > most; stretch.count -= rows, stretch.backlog_row += rows) {
            rows = std::min(stretch.count - most, pass_rows_);
            run_pass(state, stretch.tokens, rows, stretch.backlog_row);
        }
        if (stretch.count > 0) stretches.push_back(stretch);
    }
    if (stretches.size() > 1)
        run_shared_pass(stretches);
    else if (stretches.size() == 1)
        run_pass(*stretches[0].state, stretches[0].tokens, stretches[0].count,
                 stretches[0].backlog_row);
    for (const Stretch& stretch : stretches) stretch.state->waiting = 0;
}

// The newest row of each sequence is at the end of the pass, one behind the other.
void TreeDrafter::run_shared_pass(std::span<const Stretch> stretches) {
    rows_.clear();
    const bool has_features = model_->feature_columns() > 0;
    const auto take = [&](const Stretch& stretch, int first, int count) {
        if (count == 0) return;
        if (has_features) {
            const Tensor backlog = tensors_[size_t(stretch.state->pages.sequence())].backlog;
            be_.run(Copy{shared_.features.row_range(int(rows_.size()), count),
                         backlog.row_range(stretch.backlog_row + first, count)});
        }
        for (int i = first; i < first + count; ++i)
            rows_.push_back(text_row(*stretch.state, stretch.tokens, i));
    };
    for (const Stretch& stretch : stretches) {
        State& state = *stretch.state;
        state.pages.hold(state.read - state.first + stretch.count);
        take(stretch, 0, stretch.count - 1);
    }
    const int newest = int(rows_.size());
    for (const Stretch& stretch : stretches) take(stretch, stretch.count - 1, 1);
    const int count = int(rows_.size());
    const Rows block{shared_.rows.row_range(0, count)};
    be_.write(block.block, rows_.data());
    model_->read(shared_.states.row_range(0, count),
                 has_features ? shared_.features.row_range(0, count) : Tensor{}, block);
    for (size_t i = 0; i < stretches.size(); ++i) {
        State& state = *stretches[i].state;
        const TreeDrafterTensors& t = tensors_[size_t(state.pages.sequence())];
        const int row = newest + int(i);
        be_.run(Copy{t.states.row_range(pass_rows_ - 1, 1), shared_.states.row_range(row, 1)});
        be_.write(t.rows.row_range(pass_rows_ - 1, 1), &rows_[size_t(row)]);
        state.read += stretches[i].count;
        state.last = rows_[size_t(row)];
    }
}

TreeStart TreeDrafter::tree_start(State& state) {
    const TreeDrafterTensors& t = tensors_[size_t(state.pages.sequence())];
    state.pages.hold(state.read - state.first + reach_.draft_slots);
    const int row = pass_rows_ - 1;
    return {t.states.row_range(row, 1), {t.rows.row_range(row, 1)}, state.last};
}

// Writes the softness into the row of rules by which candidates are ranked.
void TreeDrafter::tell_softness(const DraftRequest& request) {
    if (!request.noise || !request.rules.block) return;
    const Softness softness(
        static_cast<const State&>(request.state).softness.value(request.temperature));
    be_.write(request.rules.block.col_range(kSoftnessInt, sizeof(softness) / sizeof(int32_t)),
              &softness);
}

std::span<const Candidate> TreeDrafter::expand(const ExpansionPlan& expansion,
                                               const DraftRequest& request) {
    catch_up(request);
    tell_softness(request);
    return grower_.expand(expansion, tree_start(static_cast<State&>(request.state)), request);
}

// The host follows the plan: a device that grows a tree without it knows one tree at a time.
void TreeDrafter::expand_group(const ExpansionPlan& expansion,
                               std::span<const DraftRequest> requests) {
    FixedVector<FollowPlan, kMostGrown> followers;
    FixedVector<Wanted, kMostGrown> wanted;
    for (const DraftRequest& request : requests) {
        followers.push_back(FollowPlan{&expansion});
        wanted.push_back({&request, std::ref(followers[followers.size() - 1])});
    }
    grow_all(wanted, expansion.top_k);
}

std::span<const Candidate> TreeDrafter::grow(const ChooseFrontier& choose, int top_k,
                                             const DraftRequest& request) {
    const Wanted wanted{&request, choose};
    grow_all({&wanted, 1}, top_k);
    return table(0);
}

void TreeDrafter::grow_all(std::span<const Wanted> wanted, int top_k, int window) {
    catch_up_all(wanted, window);
    FixedVector<TreeToGrow, kMostGrown> trees;
    for (const Wanted& tree : wanted) {
        tell_softness(*tree.request);
        trees.push_back(
            {tree.request, tree_start(static_cast<State&>(tree.request->state)), tree.choose});
    }
    grower_.grow(trees, top_k);
}

TokenTree TreeDrafter::tree(std::span<const Candidate> table, const NodeList& kept,
                            const DraftRequest& request) {
    NodeList* entries = request.drawn ? &request.drawn->entries : nullptr;
    return tree_of(table, kept, request.tokens.back(), entries);
}

std::unique_ptr<Drafter> make_tree_drafter(const DraftSource& source, TreeDrafter::Parts parts) {
    if (parts.growth.is_chosen) return make_chosen_trees(source, std::move(parts));
    return parts.growth.paths.empty() ? make_dynamic_trees(source, std::move(parts))
                                      : make_static_trees(source, std::move(parts));
}

}  // namespace aerie
