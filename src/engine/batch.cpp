// The device memory of a batch, and the steps of a cycle: propose, verify, accept, commit.
#include "engine/batch.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/error.h"
#include "core/float_environment.h"
#include "engine/ratio.h"

namespace aerie {

namespace {

// Runs a step for each cycle that has no error yet; an exception becomes the cycle's error.
template <class Step>
void each(std::span<Cycle* const> cycles, const Step& step) {
    for (Cycle* cycle : cycles) {
        if (cycle->error) continue;
        try {
            step(*cycle);
        } catch (...) {
            cycle->error = std::current_exception();
        }
    }
}

RowChoice rule_of(Sequence& sequence, int depths) {
    RowChoice rule(sequence.sampling().filters, sequence.sampling().penalties);
    rule.sequence = sequence.pages().sequence();
    rule.noise = rule.sequence * depths;
    return rule;
}

}  // namespace

KvShape kv_shape(const ModelConfig& config, const BatchLimits& limits, const DraftReach& reach) {
    return {config.layers,      config.kv_columns(),
            limits.kv,          limits.context + reach.nodes,
            limits.sequences(), shared_slots(limits.cache_tokens, limits.sequences(), reach.nodes)};
}

TargetLimits target_limits(const BatchLimits& limits) {
    return {limits.pass_rows(), limits.context + kMaxDepth + 1};
}

size_t batch_bytes(const ModelConfig& config, const BatchLimits& limits, const DraftReach& reach) {
    BatchTensors tensors;
    TensorPlan plan;
    tensors.add_to(plan, config, limits, reach);
    return plan.size_bytes();
}

Limits backend_limits(const ModelConfig& config, const BatchLimits& limits) {
    return pass_limits(config, limits.pass_rows(), limits.context + kMaxNodes);
}

void BatchTensors::add_to(TensorPlan& plan, const ModelConfig& config, const BatchLimits& limits,
                          const DraftReach& reach) {
    const int nodes = limits.tree_rows(reach.nodes), depths = reach.depth + 1;
    const int pass_rows = limits.pass_rows(reach.nodes);
    const int feature_columns = int(reach.taps.size()) * config.hidden;
    plan.add(rows, DType::I32, pass_rows, kRowInts);
    plan.add(features, DType::F32, pass_rows, feature_columns);
    plan.add(logits, DType::F32, nodes, config.vocab);
    plan.add(ids, DType::I32, 1, nodes);
    plan.add(rules, DType::I32, nodes, kRowChoiceInts);
    plan.add(seen, DType::I32, limits.sequences(), config.vocab);
    plan.add(noise, DType::F32, limits.sequences() * depths, config.vocab);
    plan.add(noise_copy, DType::F32, 1, config.vocab);
    plan.add(accepted, DType::I32, 1, limits.sequences_in_pass * depths * (kKvMoveInts + 1));
    by_sequence.resize(size_t(limits.sequences()));
    for (SequenceTensors& tensors : by_sequence) {
        plan.add(tensors.accepted_features, DType::F32, depths, feature_columns);
        plan.add(tensors.rule, DType::I32, 1, kRowChoiceInts);
        plan.add(tensors.noise_positions, DType::I32, 1, depths);
    }
}

Batch::Batch(Backend& be, Target& target, KvPool& kv, Drafter& drafter, const BatchLimits& limits)
    : be_(be),
      target_(target),
      kv_(kv),
      drafter_(drafter),
      limits_(limits),
      reach_(drafter.reach()) {
    be.reserve(backend_limits(target.config(), limits));
    TensorPlan plan;
    t_.add_to(plan, target.config(), limits, reach_);
    memory_ = plan.allocate(be);
    const int depths = reach_.depth + 1;
    for (size_t i = 0; i < t_.by_sequence.size(); ++i)
        t_.by_sequence[i].noise = {t_.noise.row_range(int(i) * depths, depths),
                                   t_.by_sequence[i].noise_positions, t_.noise_copy};
    rows_.reserve(size_t(t_.rows.rows));
    accepted_.reserve(size_t(t_.accepted.cols));
    rules_.reserve(size_t(t_.rules.rows));
    in_pass_.reserve(size_t(limits.sequences_in_pass));
    drafts_.reserve(size_t(limits.sequences_in_pass));
    trees_.reserve(size_t(limits.sequences_in_pass));
    choices_.resize(size_t(t_.ids.cols));
    logits_.resize(size_t(t_.logits.cols));
}

ChosenTokens Batch::prefill(Sequence& sequence, const std::function<bool()>& cancelled) {
    Cycle cycle;
    cycle.sequence = &sequence;
    cycle.is_first = true;
    Cycle* const one = &cycle;
    while (true) {
        if (cancelled && cancelled()) return {};
        const int rest = int(sequence.tokens().size()) - sequence.committed();
        const bool is_last = rest <= limits_.prefill_rows;
        const PromptPiece piece{&sequence, is_last ? rest - 1 : limits_.prefill_rows};
        const std::span<Cycle* const> cycles(&one, is_last ? 1 : 0);
        propose(cycles);
        run_pass(*this, cycles, {&piece, piece.count > 0 ? 1u : 0u});
        if (cycle.error) std::rethrow_exception(cycle.error);
        if (is_last) return std::move(cycle.output);
    }
}

void run_pass(Batch& batch, std::span<Cycle* const> cycles, std::span<const PromptPiece> pieces) {
    batch.verify(cycles, pieces);
    for (Cycle* cycle : cycles)
        if (!cycle->error) cycle->path = accept(cycle->tree, cycle->choices);
    batch.commit(cycles);
}

int Batch::piece_rows(std::span<Cycle* const> cycles) const {
    int rows = 0;
    for (const Cycle* cycle : cycles) rows += cycle->error ? 0 : cycle->tree.size();
    const int room = t_.rows.rows - std::min(rows, t_.logits.rows);
    return std::min(room, cycles.empty() ? limits_.prefill_rows : kPieceRows);
}

size_t Batch::cycles_of_pass(std::span<Cycle* const> cycles) const {
    size_t count = 0;
    for (int rows = 0; count < cycles.size(); ++count) {
        const Cycle& cycle = *cycles[count];
        rows += cycle.error ? 0 : cycle.tree.size();
        if (rows > t_.logits.rows) break;
    }
    return count;
}

void Batch::propose(std::span<Cycle* const> cycles) {
    const FloatEnvironment environment;
    Stopwatch watch(limits_.clock, seconds_.draft);
    each(cycles, [this](Cycle& cycle) { begin(cycle); });
    if (CostAware* costs = drafter_.cost_aware(); costs && !cycles.empty() && !cycles[0]->is_first)
        costs->begin_round(round_of(cycles));
    for (size_t first = 0; first < cycles.size();) first = propose_from(cycles, first);
}

// The round of these cycles, whose trees are assumed to be as large as those of the last pass.
RoundShape Batch::round_of(std::span<Cycle* const> cycles) const {
    RoundShape round{int(cycles.size()), 0, 1};
    for (const Cycle* cycle : cycles) round.drafting += cycle->sequence->answer().drafts;
    round.drafting = std::max(1, round.drafting);
    round.keys = 0;
    for (const Cycle* cycle : cycles)
        round.keys += double(cycle->sequence->committed()) / double(cycles.size());
    if (!in_pass_.empty())
        round.rows =
            std::max(1.0, double(int(rows_.size()) - first_scored_) / double(in_pass_.size()));
    return round;
}

// Proposes trees for the cycles from `first` on that draft with the same head, and returns where
// the next head begins.
size_t Batch::propose_from(std::span<Cycle* const> cycles, size_t first) {
    drafts_.clear();
    trees_.clear();
    const auto& head = cycles[first]->sequence->answer().head;
    size_t end = first;
    for (; end < cycles.size() && cycles[end]->sequence->answer().head == head; ++end) {
        Cycle& cycle = *cycles[end];
        Sequence& sequence = *cycle.sequence;
        if (cycle.error || cycle.is_first || !sequence.answer().drafts) continue;
        DraftRequest request{sequence.draft(), sequence.tokens(), rules_of(sequence),
                             sequence.sampling().filters.temperature};
        if (request.temperature > 0) {
            request.noise = &tensors_of(sequence).noise;
            request.drawn = &cycle.drawn;
        }
        drafts_.push_back(request);
        trees_.push_back(&cycle.tree);
    }
    if (!drafts_.empty()) {
        drafter_.use_head(head);
        drafter_.propose_all(drafts_, trees_);
    }
    return end;
}

void Batch::begin(Cycle& cycle) {
    Sequence& sequence = *cycle.sequence;
    cycle.drawn.clear();
    cycle.tree = TokenTree(sequence.pending());
    if (cycle.is_first) begin_choices(sequence);
    const int next = int(sequence.tokens().size());  // position of the first token to be chosen
    NoiseRows& noise = tensors_of(sequence).noise;
    noise.begin(sequence.sampling().seed, next);
    if (cycle.is_first || !sequence.answer().drafts || sequence.sampling().filters.temperature <= 0)
        return;
    cycle.drawn.rule = sequence.rule();
    cycle.drawn.seed = sequence.sampling().seed;
    cycle.drawn.position = next;
}

void Batch::verify(std::span<Cycle* const> cycles, std::span<const PromptPiece> pieces) {
    const FloatEnvironment environment;
    const double before = seconds_.target();
    {
        Stopwatch watch(limits_.clock, seconds_.verify);
        rows_.clear();
        for (const PromptPiece& piece : pieces) add_piece(piece);
        const int unscored = int(rows_.size());
        in_pass_.clear();
        each(cycles, [this](Cycle& cycle) { add_tree(cycle); });
        if (rows_.empty()) return;
        forward(int(rows_.size()) - unscored);
    }
    ++counts_.passes;
    counts_.rows += rows_.size();
    counts_.sequences += in_pass_.size();
    {
        Stopwatch watch(limits_.clock, seconds_.sample);
        unedited_.clear();
        forbidden_.clear();
        each(in_pass_, [this](Cycle& cycle) { edit_logits(cycle); });
        choose(in_pass_);
    }
    verify_seconds_ = seconds_.target() - before;
    if (CostAware* costs = drafter_.cost_aware(); costs && in_pass_.size() > 1 && pieces.empty())
        costs->saw_pass(int(rows_.size()), verify_seconds_);
    int row = 0;
    for (const PromptPiece& piece : pieces) {
        observe(*piece.sequence, piece.sequence->committed(),
                t_.features.row_range(row, piece.count), true);
        piece.sequence->commit(piece.count);
        row += piece.count;
    }
}

void Batch::add_piece(const PromptPiece& piece) {
    Sequence& sequence = *piece.sequence;
    const int first = sequence.committed();
    sequence.pages().hold(first + piece.count);
    for (int i = first; i < first + piece.count; ++i)
        rows_.push_back(causal_row(sequence.tokens()[size_t(i)], i, sequence.pages().sequence()));
}

// The root is the last known token, whatever of the text before it is still a piece of this pass.
void Batch::add_tree(Cycle& cycle) {
    Sequence& sequence = *cycle.sequence;
    check_tokens(cycle.tree.tokens, target_.config().vocab);
    const int root = int(sequence.tokens().size()) - 1;
    sequence.pages().hold(root + cycle.tree.size());
    cycle.row = int(rows_.size());
    for (Row& row : verify_rows(cycle.tree, root)) {
        row.sequence = sequence.pages().sequence();
        rows_.push_back(row);
    }
    in_pass_.push_back(&cycle);
}

void Batch::commit(std::span<Cycle* const> cycles) {
    const FloatEnvironment environment;
    each(cycles, [this](Cycle& cycle) { end_where_forbidden(cycle); });
    compact(cycles);
    each(cycles, [this](Cycle& cycle) { commit(cycle); });
}

// Whether these are the first nodes of the tree, as after a plain pass; then their rows need no
// move.
bool Batch::is_in_place(std::span<const int> nodes) {
    return nodes.back() == int(nodes.size()) - 1;
}

// Moves keys and values of accepted nodes to the slots where their sequences continue. One write
// gives the device the moves, followed by the accepted rows of the pass.
void Batch::compact(std::span<Cycle* const> cycles) {
    accepted_.clear();
    const auto each_moved = [&](const auto& visit) {
        for (const Cycle* cycle : cycles)
            if (!cycle->error && !is_in_place(cycle->path.nodes)) visit(*cycle);
    };
    each_moved([&](const Cycle& cycle) {
        const int end = cycle.sequence->committed();
        for (int i = 0; i < int(cycle.path.nodes.size()); ++i)
            for (int word :
                 {cycle.sequence->pages().sequence(), end + cycle.path.nodes[size_t(i)], end + i})
                accepted_.push_back(word);
    });
    next_accepted_ = int(accepted_.size());
    if (accepted_.empty()) return;
    each_moved([&](const Cycle& cycle) {
        for (int node : cycle.path.nodes) accepted_.push_back(cycle.row + node);
    });
    be_.write(t_.accepted.col_range(0, int(accepted_.size())), accepted_.data());
    Tensor moves = t_.accepted;
    moves.rows = next_accepted_ / kKvMoveInts;
    moves.cols = moves.row_stride = kKvMoveInts;
    kv_.compact(moves);
}

void Batch::commit(Cycle& cycle) {
    Sequence& sequence = *cycle.sequence;
    const std::span<const int> nodes = cycle.path.nodes;
    const Tensor features = features_of(cycle);  // first: it takes its part of the accepted rows
    ChosenTokens output;
    for (int node : nodes.subspan(1)) output.tokens.push_back(cycle.tree.tokens[size_t(node)]);
    output.tokens.push_back(cycle.path.next);
    read_logprobs(cycle, output);

    const int position = sequence.committed();
    sequence.put_out(output.tokens);
    counts_.tokens += output.tokens.size();
    observe(sequence, position, features, cycle.is_first);
    // The time of a pass that several sequences share is not the cost of one tree.
    const double seconds = int(rows_.size()) == cycle.tree.size() ? verify_seconds_ : 0;
    if (sequence.answer().drafts && !cycle.is_first)
        drafter_.learn(
            {sequence.draft(), cycle.tree, cycle.choices, nodes, cycle.path.next, seconds});
    sequence.commit(int(nodes.size()));
    cycle.drawn.clear();
    cycle.output = std::move(output);
    if (!cycle.is_first) return;
    cycle.is_first = false;
    Stopwatch watch(limits_.clock, seconds_.draft);
    if (sequence.answer().drafts)
        drafter_for(sequence).prepare({sequence.draft(), sequence.tokens()});
}

// The features that the pass computed for the accepted nodes, in one tensor.
Tensor Batch::features_of(const Cycle& cycle) {
    const int count = int(cycle.path.nodes.size());
    if (is_in_place(cycle.path.nodes)) return t_.features.row_range(cycle.row, count);
    const Tensor rows = t_.accepted.col_range(next_accepted_, count);
    next_accepted_ += count;
    if (t_.features.cols == 0) return t_.features.row_range(cycle.row, count);
    const Tensor features = tensors_of(*cycle.sequence).accepted_features.row_range(0, count);
    be_.run(GatherRows{features, t_.features, rows});
    return features;
}

// Runs the target over `rows_`, and computes the logits of the last `logit_rows` rows.
void Batch::forward(int logit_rows) {
    int count = int(rows_.size());
    const int scored = logit_rows;
    first_scored_ = count - scored;
    const bool comes_again = logit_rows == count;
    if (comes_again && be_.capabilities().records) {
        count = logit_rows = recorded_rows(count, t_.logits.rows);
        rows_.resize(size_t(count), kPaddingRow);
    }
    const Tensor block = t_.rows.row_range(0, count);
    be_.write(block, rows_.data());
    rows_.resize(size_t(first_scored_ + scored));
    const auto pass = [&] {
        target_.forward({{block},
                         &kv_,
                         reach_.taps,
                         t_.features.row_range(0, count),
                         t_.logits.row_range(0, logit_rows)});
    };
    if (comes_again)
        be_.replay(replays_.of({uint64_t(count)}), std::ref(pass));
    else
        pass();  // part of a prompt: this size seldom recurs
}

// Writes the sequence's rules to the device, where they hold until another sequence takes its
// place.
void Batch::begin_choices(Sequence& sequence) {
    const RowChoice rule = rule_of(sequence, reach_.depth + 1);
    be_.write(tensors_of(sequence).rule, &rule);
}

Rules Batch::rules_of(Sequence& sequence) {
    const Sampling& sampling = sequence.sampling();
    Rules rules{tensors_of(sequence).rule};
    rules.include(sampling.filters);
    if (sampling.penalties.any()) {
        rules.seen = t_.seen;
        sequence.seen().write_to(be_, t_.seen.row_range(sequence.pages().sequence(), 1));
    }
    return rules;
}

// The rules for each row of these trees.
Tensor Batch::rule_rows(std::span<Cycle* const> cycles) {
    if (cycles.size() == 1) return tensors_of(*cycles[0]->sequence).rule;
    rules_.clear();
    for (const Cycle* cycle : cycles)
        rules_.insert(rules_.end(), size_t(cycle->tree.size()),
                      rule_of(*cycle->sequence, reach_.depth + 1));
    const Tensor block = t_.rules.row_range(0, int(rules_.size()));
    be_.write(block, rules_.data());
    return block;
}

// Makes the target's choices after the nodes of these trees, over which the newest pass ran.
void Batch::choose(std::span<Cycle* const> cycles) {
    const auto is_drawn = [](const Cycle* cycle) { return cycle->drawn.any(); };
    if (!std::all_of(cycles.begin(), cycles.end(), is_drawn)) choose_by_noise(cycles);
    each(cycles, [&](Cycle& cycle) {
        if (is_drawn(&cycle)) choose_by_ratio(cycle);
    });
}

void Batch::choose_by_noise(std::span<Cycle* const> cycles) {
    Rules rules;
    bool with_noise = false;
    for (const Cycle* cycle : cycles) {
        const Rules own = rules_of(*cycle->sequence);
        if (own.seen) rules.seen = own.seen;
        rules.top_k |= own.top_k;
        rules.top_p |= own.top_p;
        if (cycle->sequence->sampling().filters.temperature == 0) continue;
        with_noise = true;
        const NodeList depth = depths(cycle->tree);
        tensors_of(*cycle->sequence)
            .noise.rows(be_, *std::max_element(depth.begin(), depth.end()) + 1);
    }
    rules.block = rule_rows(cycles);
    sample(int(rows_.size()) - first_scored_, rules, with_noise);
    each(cycles, [this](Cycle& cycle) {
        cycle.choices.resize(size_t(cycle.tree.size()));
        std::copy_n(choices_.begin() + logit_row(cycle), cycle.tree.size(), cycle.choices.begin());
        if (std::any_of(cycle.choices.begin(), cycle.choices.end(), [](int id) { return id < 0; }))
            throw Error(kOnlyNan, Cause::damaged);
    });
}

// Samples the target's choices after the `count` scored rows of the newest pass, into choices_.
void Batch::sample(int count, const Rules& rules, bool with_noise) {
    Sample step;
    step.choice = {t_.logits.row_range(0, count), rules};
    step.rows = {t_.rows.row_range(first_scored_, count)};
    if (with_noise) step.noise = t_.noise;
    step.ids = t_.ids.col_range(0, count);
    be_.run(step);
    be_.read(step.ids, choices_.data());
}

void Batch::observe(Sequence& sequence, int first, Tensor features, bool is_prompt) {
    if (!sequence.answer().drafts) return;  // let_draft_follow() has the positions run again
    Stopwatch watch(limits_.clock, seconds_.draft);
    drafter_for(sequence).observe(
        {sequence.draft(), sequence.tokens(), first, features, is_prompt});
}

// Chooses after a drawn tree, on the host, by rejection sampling.
void Batch::choose_by_ratio(Cycle& cycle) {
    const Drawn& drawn = cycle.drawn;
    const auto target = [&](int node) {
        be_.read(t_.logits.row_range(logit_row(cycle) + node, 1), logits_.data());
        Distribution p = processed(logits_, drawn.rule, path_tokens(cycle.tree, node));
        if (p.empty()) throw Error(kOnlyNan, Cause::damaged);
        return p;
    };
    KeyedChance chance(drawn.seed, drawn.position, Purpose::accept);
    cycle.choices = choices_by_ratio(cycle.tree, drawn, target, chance);
}

// Logits on the host: log-probabilities of choices, and the caller's edits before a choice.

void Batch::read_logprobs(const Cycle& cycle, ChosenTokens& output) {
    const AnswerOptions& answer = cycle.sequence->answer();
    if (!answer.with_logprobs) return;
    for (size_t i = 0; i < cycle.path.nodes.size(); ++i) {
        const std::span<const float> logits = raw_logits(logit_row(cycle) + cycle.path.nodes[i]);
        const double logprob = log_probability(logits, output.tokens[i]);
        if (std::isnan(logprob))
            throw Error("the model computed NaN or infinity; its weights are damaged",
                        Cause::damaged);
        output.logprobs.push_back(float(logprob));
        for (const TokenLogprob& other : likeliest(logits, answer.alternatives))
            output.alternatives.push_back(other);
    }
}

// The model's logits of a row before any edit; valid until the next call.
std::span<const float> Batch::raw_logits(int row) {
    if (size_t(row) < unedited_.size() && !unedited_[size_t(row)].empty())
        return unedited_[size_t(row)];
    be_.read(t_.logits.row_range(row, 1), logits_.data());
    return logits_;
}

bool Batch::is_forbidden(int row) const {
    return std::find(forbidden_.begin(), forbidden_.end(), row) != forbidden_.end();
}

// Ends the path before a node at which an edit forbids every token. It is not known yet whether the
// text continues from that node: if so, the node is the root of the next cycle, and this becomes an
// error.
void Batch::end_where_forbidden(Cycle& cycle) const {
    DepthList<int>& nodes = cycle.path.nodes;
    const auto found = std::find_if(nodes.begin(), nodes.end(), [&](int node) {
        return is_forbidden(logit_row(cycle) + node);
    });
    if (found == nodes.end()) return;
    if (found == nodes.begin()) throw Error(kAllForbidden);
    cycle.path.next = cycle.tree.tokens[size_t(*found)];
    nodes.resize(size_t(found - nodes.begin()));
}

void Batch::edit_logits(Cycle& cycle) {
    if (!cycle.sequence->answer().edit_logits) return;
    for (int node = 0; node < cycle.tree.size(); ++node) {
        const std::span<const int> before = cycle.sequence->tokens();
        edited_text_.assign(before.begin(), before.end());
        const PathTokens path = path_tokens(cycle.tree, node);
        std::reverse_copy(path.begin(), path.end(), std::back_inserter(edited_text_));
        edit_logits(*cycle.sequence, edited_text_, logit_row(cycle) + node);
    }
}

// Lets the caller edit the row of logits that follows these tokens.
void Batch::edit_logits(const Sequence& sequence, std::span<const int> tokens, int row) {
    const AnswerOptions& answer = sequence.answer();
    if (!answer.edit_logits) return;
    const Tensor logits = t_.logits.row_range(row, 1);
    be_.read(logits, logits_.data());
    if (answer.with_logprobs) {
        unedited_.resize(std::max(unedited_.size(), size_t(row) + 1));
        unedited_[size_t(row)] = logits_;
    }
    answer.edit_logits(tokens, logits_);
    // The text may not go through such a node. Equal logits give it some choice, which is not used.
    constexpr float kForbids = -std::numeric_limits<float>::infinity();
    if (std::none_of(logits_.begin(), logits_.end(), [](float x) { return x > kForbids; })) {
        forbidden_.push_back(row);
        std::fill(logits_.begin(), logits_.end(), 0.0f);
    }
    be_.write(logits, logits_.data());
}

}  // namespace aerie
