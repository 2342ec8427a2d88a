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

RowChoice rule_of(Sequence& text, int depths) {
    RowChoice rule(text.sampling().filters, text.sampling().penalties);
    rule.text = text.pages().sequence();
    rule.noise = rule.text * depths;
    return rule;
}

}  // namespace

KvShape kv_shape(const ModelConfig& config, const BatchLimits& limits, const DraftReach& reach) {
    return {config.layers, config.kv_columns(), limits.kv, limits.context + reach.nodes,
            limits.sequences()};
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
    const int nodes = limits.texts * reach.nodes, depths = reach.depth + 1;
    const int pass_rows = std::max(limits.prefill_rows, nodes);
    const int feature_columns = int(reach.taps.size()) * config.hidden;
    plan.add(rows, DType::I32, pass_rows, kRowInts);
    plan.add(features, DType::F32, pass_rows, feature_columns);
    plan.add(logits, DType::F32, nodes, config.vocab);
    plan.add(ids, DType::I32, 1, nodes);
    plan.add(rules, DType::I32, nodes, kRowChoiceInts);
    plan.add(seen, DType::I32, limits.sequences(), config.vocab);
    plan.add(noise, DType::F32, limits.sequences() * depths, config.vocab);
    plan.add(noise_copy, DType::F32, 1, config.vocab);
    plan.add(accepted, DType::I32, 1, limits.texts * depths * (kKvMoveInts + 1));
    texts.resize(size_t(limits.sequences()));
    for (SequenceTensors& text : texts) {
        plan.add(text.accepted_features, DType::F32, depths, feature_columns);
        plan.add(text.rule, DType::I32, 1, kRowChoiceInts);
        plan.add(text.noise_positions, DType::I32, 1, depths);
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
    for (size_t i = 0; i < t_.texts.size(); ++i)
        t_.texts[i].noise = {t_.noise.row_range(int(i) * depths, depths),
                             t_.texts[i].noise_positions, t_.noise_copy};
    rows_.reserve(size_t(t_.rows.rows));
    accepted_.reserve(size_t(t_.accepted.cols));
    rules_.reserve(size_t(t_.rules.rows));
    choices_.resize(size_t(t_.ids.cols));
    logits_.resize(size_t(t_.logits.cols));
}

ChosenTokens Batch::prefill(Sequence& text, const std::function<bool()>& cancelled) {
    const FloatEnvironment environment;
    const int length = int(text.tokens().size());
    while (true) {
        if (cancelled && cancelled()) return {};
        const int first = text.committed(), count = std::min(limits_.prefill_rows, length - first);
        text.pages().hold(first + count);
        rows_.clear();
        for (int i = first; i < first + count; ++i)
            rows_.push_back(causal_row(text.tokens()[size_t(i)], i, text.pages().sequence()));
        const bool is_last = first + count == length;
        forward(is_last ? 1 : 0);
        if (is_last) break;
        observe(text, first, t_.features.row_range(0, count), true);
        text.commit(count);
    }
    const int first = text.committed(), count = length - first;
    begin_choices(text);
    tensors_of(text).noise.begin(text.sampling().seed, length);
    const bool with_noise = text.sampling().filters.temperature > 0;
    if (with_noise) tensors_of(text).noise.rows(be_, 1);
    unedited_.clear();
    forbidden_.clear();
    edit_logits(text, text.tokens(), 0);
    if (is_forbidden(0)) throw Error(kAllForbidden);
    ChosenTokens output{{sample(count - 1, 1, rules_of(text), with_noise)[0]}, {}, {}};
    const int root = 0;
    read_logprobs(text, {&root, 1}, 0, output);
    text.put_out(output.tokens);
    observe(text, first, t_.features.row_range(0, count), true);
    text.commit(count);
    Stopwatch watch(limits_.clock, seconds_.draft);
    if (text.answer().drafts) drafter_.prepare({text.draft(), text.tokens()});
    return output;
}

void Batch::propose(std::span<Cycle> cycles) {
    const FloatEnvironment environment;
    Stopwatch watch(limits_.clock, seconds_.draft);
    for (Cycle& cycle : cycles) {
        Sequence& text = *cycle.text;
        cycle.drawn.clear();
        NoiseRows& noise = tensors_of(text).noise;
        noise.begin(text.sampling().seed, text.committed() + 1);
        cycle.tree = TokenTree(text.pending());
        if (!text.answer().drafts) continue;
        DraftRequest request{text.draft(), text.tokens(), rules_of(text),
                             text.sampling().filters.temperature};
        if (request.temperature > 0) {
            cycle.drawn.rule = text.rule();
            cycle.drawn.seed = text.sampling().seed;
            cycle.drawn.position = text.committed() + 1;
            request.noise = &noise;
            request.drawn = &cycle.drawn;
        }
        cycle.tree = drafter_.propose(request);
    }
}

void Batch::verify(std::span<Cycle> cycles) {
    const FloatEnvironment environment;
    const double before = seconds_.target();
    {
        Stopwatch watch(limits_.clock, seconds_.verify);
        rows_.clear();
        for (const Cycle& cycle : cycles) {
            check_tokens(cycle.tree.tokens, target_.config().vocab);
            Sequence& text = *cycle.text;
            text.pages().hold(text.committed() + cycle.tree.size());
            for (Row& row : verify_rows(cycle.tree, text.committed())) {
                row.sequence = text.pages().sequence();
                rows_.push_back(row);
            }
        }
        forward(int(rows_.size()));
    }
    Stopwatch watch(limits_.clock, seconds_.sample);
    edit_logits(cycles);
    choose(cycles);
    verify_seconds_ = seconds_.target() - before;
}

void Batch::commit(std::span<Cycle> cycles) {
    const FloatEnvironment environment;
    int first = 0;
    for (Cycle& cycle : cycles) {
        end_where_forbidden(cycle, first);
        first += cycle.tree.size();
    }
    compact(cycles);
    first = 0;
    for (Cycle& cycle : cycles) {
        commit(cycle, first);
        first += cycle.tree.size();
    }
}

// Whether these are the first nodes of the tree, as after a plain pass; then their rows need no
// move.
bool Batch::is_in_place(std::span<const int> nodes) {
    return nodes.back() == int(nodes.size()) - 1;
}

// Moves keys and values of accepted nodes to the slots where their sequences continue. One write
// gives the device the moves, followed by the accepted rows of the pass.
void Batch::compact(std::span<const Cycle> cycles) {
    accepted_.clear();
    for (const Cycle& cycle : cycles) {
        const std::span<const int> nodes = cycle.path.nodes;
        if (is_in_place(nodes)) continue;
        const int end = cycle.text->committed();
        for (int i = 0; i < int(nodes.size()); ++i)
            for (int word : {cycle.text->pages().sequence(), end + nodes[size_t(i)], end + i})
                accepted_.push_back(word);
    }
    next_accepted_ = int(accepted_.size());
    if (accepted_.empty()) return;
    int first = 0;
    for (const Cycle& cycle : cycles) {
        if (!is_in_place(cycle.path.nodes))
            for (int node : cycle.path.nodes) accepted_.push_back(first + node);
        first += cycle.tree.size();
    }
    be_.write(t_.accepted.col_range(0, int(accepted_.size())), accepted_.data());
    Tensor moves = t_.accepted;
    moves.rows = next_accepted_ / kKvMoveInts;
    moves.cols = moves.row_stride = kKvMoveInts;
    kv_.compact(moves);
}

// `first` is the cycle's first row in the pass.
void Batch::commit(Cycle& cycle, int first) {
    Sequence& text = *cycle.text;
    const std::span<const int> nodes = cycle.path.nodes;
    ChosenTokens output;
    for (int node : nodes.subspan(1)) output.tokens.push_back(cycle.tree.tokens[size_t(node)]);
    output.tokens.push_back(cycle.path.next);
    read_logprobs(text, nodes, first, output);

    const int position = text.committed();
    text.put_out(output.tokens);
    observe(text, position, features_of(text, nodes, first), false);
    if (text.answer().drafts)
        drafter_.learn(
            {text.draft(), cycle.tree, cycle.choices, nodes, cycle.path.next, verify_seconds_});
    text.commit(int(nodes.size()));
    cycle.drawn.clear();
    cycle.output = std::move(output);
}

// The features that the pass computed for these nodes, in one tensor.
Tensor Batch::features_of(Sequence& text, std::span<const int> nodes, int first) {
    const int count = int(nodes.size());
    if (is_in_place(nodes) || t_.features.cols == 0) return t_.features.row_range(first, count);
    const Tensor features = tensors_of(text).accepted_features.row_range(0, count);
    be_.run(GatherRows{features, t_.features, t_.accepted.col_range(next_accepted_, count)});
    next_accepted_ += count;
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
void Batch::begin_choices(Sequence& text) {
    const RowChoice rule = rule_of(text, reach_.depth + 1);
    be_.write(tensors_of(text).rule, &rule);
}

Rules Batch::rules_of(Sequence& text) {
    const Sampling& sampling = text.sampling();
    Rules rules{tensors_of(text).rule};
    rules.include(sampling.filters);
    if (sampling.penalties.any()) {
        rules.seen = t_.seen;
        text.seen().write_to(be_, t_.seen.row_range(text.pages().sequence(), 1));
    }
    return rules;
}

// The rules for each row of these trees.
Tensor Batch::rule_rows(std::span<const Cycle> cycles) {
    if (cycles.size() == 1) return tensors_of(*cycles[0].text).rule;
    rules_.clear();
    for (const Cycle& cycle : cycles)
        rules_.insert(rules_.end(), size_t(cycle.tree.size()),
                      rule_of(*cycle.text, reach_.depth + 1));
    const Tensor block = t_.rules.row_range(0, int(rules_.size()));
    be_.write(block, rules_.data());
    return block;
}

// Makes the target's choices after the nodes of these trees, over which the newest pass ran.
void Batch::choose(std::span<Cycle> cycles) {
    const auto is_drawn = [](const Cycle& cycle) { return cycle.drawn.any(); };
    if (!std::all_of(cycles.begin(), cycles.end(), is_drawn)) choose_by_noise(cycles);
    int first = 0;
    for (Cycle& cycle : cycles) {
        if (is_drawn(cycle)) choose_by_ratio(cycle, first);
        first += cycle.tree.size();
    }
}

void Batch::choose_by_noise(std::span<Cycle> cycles) {
    Rules rules;
    bool with_noise = false;
    for (const Cycle& cycle : cycles) {
        const Rules own = rules_of(*cycle.text);
        if (own.seen) rules.seen = own.seen;
        rules.top_k |= own.top_k;
        rules.top_p |= own.top_p;
        if (cycle.text->sampling().filters.temperature == 0) continue;
        with_noise = true;
        const NodeList depth = depths(cycle.tree);
        tensors_of(*cycle.text).noise.rows(be_, *std::max_element(depth.begin(), depth.end()) + 1);
    }
    rules.block = rule_rows(cycles);
    const int* choice = sample(0, int(rows_.size()), rules, with_noise).data();
    for (Cycle& cycle : cycles) {
        cycle.choices.resize(size_t(cycle.tree.size()));
        std::copy_n(choice, cycle.tree.size(), cycle.choices.begin());
        choice += cycle.tree.size();
    }
}

// Samples the target's choices after rows [first, first + count) of the newest pass.
std::span<const int> Batch::sample(int first, int count, const Rules& rules, bool with_noise) {
    Sample step;
    step.choice = {t_.logits.row_range(first - first_scored_, count), rules};
    step.rows = {t_.rows.row_range(first, count)};
    if (with_noise) step.noise = t_.noise;
    step.ids = t_.ids.col_range(0, count);
    be_.run(step);
    const std::span<int> choices = std::span(choices_).first(size_t(count));
    be_.read(step.ids, choices.data());
    for (int choice : choices)
        if (choice < 0) throw Error(kOnlyNan);
    return choices;
}

void Batch::observe(Sequence& text, int first, Tensor features, bool is_prompt) {
    if (!text.answer().drafts) return;  // let_draft_follow() has the positions run again
    Stopwatch watch(limits_.clock, seconds_.draft);
    drafter_.observe({text.draft(), text.tokens(), first, features, is_prompt});
}

// Chooses after a drawn tree, on the host, by rejection sampling. `first` is the cycle's first row
// in the pass.
void Batch::choose_by_ratio(Cycle& cycle, int first) {
    const Drawn& drawn = cycle.drawn;
    const auto target = [&](int node) {
        be_.read(t_.logits.row_range(first + node, 1), logits_.data());
        Distribution p = processed(logits_, drawn.rule, path_tokens(cycle.tree, node));
        if (p.empty()) throw Error(kOnlyNan);
        return p;
    };
    KeyedChance chance(drawn.seed, drawn.position, Purpose::accept);
    cycle.choices = choices_by_ratio(cycle.tree, drawn, target, chance);
}

// Logits on the host: log-probabilities of choices, and the caller's edits before a choice.

// `first` is the row of logits that belongs to node 0.
void Batch::read_logprobs(const Sequence& text, std::span<const int> nodes, int first,
                          ChosenTokens& output) {
    if (!text.answer().with_logprobs) return;
    for (size_t i = 0; i < nodes.size(); ++i) {
        const std::span<const float> logits = raw_logits(first + nodes[i]);
        const double logprob = log_probability(logits, output.tokens[i]);
        if (std::isnan(logprob))
            throw Error("the model computed NaN or infinity; its weights are damaged");
        output.logprobs.push_back(float(logprob));
        for (const TokenLogprob& other : likeliest(logits, text.answer().alternatives))
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
// error. `first` is the cycle's first row of logits.
void Batch::end_where_forbidden(Cycle& cycle, int first) const {
    DepthList<int>& nodes = cycle.path.nodes;
    const auto found = std::find_if(nodes.begin(), nodes.end(),
                                    [&](int node) { return is_forbidden(first + node); });
    if (found == nodes.end()) return;
    if (found == nodes.begin()) throw Error(kAllForbidden);
    cycle.path.next = cycle.tree.tokens[size_t(*found)];
    nodes.resize(size_t(found - nodes.begin()));
}

void Batch::edit_logits(std::span<const Cycle> cycles) {
    unedited_.clear();
    forbidden_.clear();
    int first = 0;
    for (const Cycle& cycle : cycles) {
        const bool edits = bool(cycle.text->answer().edit_logits);
        for (int node = 0; edits && node < cycle.tree.size(); ++node) {
            const std::span<const int> text = cycle.text->tokens();
            edited_text_.assign(text.begin(), text.end());
            const PathTokens path = path_tokens(cycle.tree, node);
            std::reverse_copy(path.begin(), path.end(), std::back_inserter(edited_text_));
            edit_logits(*cycle.text, edited_text_, first + node);
        }
        first += cycle.tree.size();
    }
}

// Lets the caller edit the row of logits that follows these tokens.
void Batch::edit_logits(const Sequence& text, std::span<const int> tokens, int row) {
    const AnswerOptions& answer = text.answer();
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
