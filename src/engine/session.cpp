// The steps of a cycle. Everything on the device is allocated in the constructor.
#include "engine/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/error.h"
#include "core/float_environment.h"

namespace aerie {

namespace {

// Tokens of an answer that penalties have room for from the start; longer ones make it grow.
constexpr int kReservedTokens = 512;

// Adds the time until it goes out of scope.
class Stopwatch {
  public:
    explicit Stopwatch(double& seconds) : seconds_(seconds) {}
    ~Stopwatch() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

  private:
    using Clock = std::chrono::steady_clock;
    double& seconds_;
    Clock::time_point start_ = Clock::now();
};

}  // namespace

KvShape kv_shape(const ModelConfig& config, const SessionLimits& limits, const DraftReach& reach) {
    return {config.layers, config.kv_columns(), limits.kv, limits.context + reach.nodes};
}

TargetLimits target_limits(const SessionLimits& limits) {
    return {std::max(limits.prefill_rows, kMaxNodes), limits.context + kMaxDepth + 1};
}

size_t session_bytes(const ModelConfig& config, const SessionLimits& limits,
                     const DraftReach& reach) {
    SessionTensors tensors;
    TensorPlan plan;
    tensors.add_to(plan, config, limits, reach);
    return plan.size_bytes() + kv_shape(config, limits, reach).size_bytes();
}

Limits backend_limits(const ModelConfig& config, const SessionLimits& limits) {
    return pass_limits(config, std::max(limits.prefill_rows, kMaxNodes),
                       limits.context + kMaxNodes);
}

void SessionTensors::add_to(TensorPlan& plan, const ModelConfig& config,
                            const SessionLimits& limits, const DraftReach& reach) {
    const int nodes = reach.nodes, depths = reach.depth + 1;
    const int pass_rows = std::max(limits.prefill_rows, nodes);
    const int feature_columns = int(reach.taps.size()) * config.hidden;
    plan.add(rows, DType::I32, pass_rows, kRowInts);
    plan.add(features, DType::F32, pass_rows, feature_columns);
    plan.add(accepted_features, DType::F32, depths, feature_columns);
    plan.add(logits, DType::F32, nodes, config.vocab);
    plan.add(ids, DType::I32, 1, nodes);
    plan.add(index, DType::I32, 1, depths);
    plan.add(moves, DType::I32, depths, kKvMoveInts);
    noise.add_to(plan, depths, config.vocab);
}

Session::Session(Backend& be, Target& target, Drafter& drafter, const SessionLimits& limits)
    : be_(be),
      target_(target),
      drafter_(drafter),
      limits_(limits),
      reach_(drafter.reach()),
      kv_(be, kv_shape(target.config(), limits, reach_)) {
    be.reserve(backend_limits(target.config(), limits));
    TensorPlan plan;
    t_.add_to(plan, target.config(), limits, reach_);
    memory_ = plan.allocate(be);
    logits_.resize(size_t(t_.logits.cols));
}

void Session::begin(const Sampling& sampling, bool with_logprobs) {
    check_sampling(sampling);
    sampling_ = sampling;
    with_logprobs_ = with_logprobs;
    history_.reset(sampling.penalties, target_.config().vocab);
    committed_ = 0;
    seconds_ = {};
}

Turn Session::prefill(std::span<const int> prompt, const std::function<bool()>& cancelled) {
    const FloatEnvironment environment;
    if (prompt.empty()) throw UsageError("the prompt is empty");
    if (prompt.size() >= size_t(limits_.context))
        throw UsageError("the prompt has " + std::to_string(prompt.size()) +
                         " tokens; a context of " + std::to_string(limits_.context) +
                         " has no room for it and an answer");
    check_tokens(prompt, target_.config());
    const int length = int(prompt.size());
    std::vector<Row> rows;
    while (true) {
        if (cancelled && cancelled()) return {};
        rows.assign(size_t(std::min(limits_.prefill_rows, length - committed_)), {});
        for (int i = 0; i < int(rows.size()); ++i) {
            rows[i].token = prompt[size_t(committed_ + i)];
            rows[i].position = rows[i].slot = rows[i].prefix = committed_ + i;
        }
        const int count = int(rows.size());
        const bool last = committed_ + count == length;
        forward(rows, last ? 1 : 0);
        if (last) break;
        observe(t_.features.row_range(0, count),
                prompt.subspan(size_t(committed_) + 1, rows.size()), committed_);
        committed_ += count;
    }
    const int count = int(rows.size());
    history_.add_prompt(prompt);
    if (const int edits = history_.reserve(reach_.nodes, kReservedTokens); edits > edit_capacity_)
        reserve_edits(edits);
    t_.noise.begin(sampling_.seed, length);
    const int pending = choose({t_.rows.row_range(count - 1, 1)}, history_.edits(), 1).front();
    const int root = 0;
    Turn turn{{pending}, read_logprobs({&root, 1}, {&pending, 1})};

    std::vector<int> next_tokens(prompt.begin() + committed_ + 1, prompt.end());
    next_tokens.push_back(pending);
    observe(t_.features.row_range(0, count), next_tokens, committed_);
    {
        Stopwatch watch(seconds_.draft);
        drafter_.prepare();
    }
    committed_ = length;
    advance(turn.tokens);
    return turn;
}

TokenTree Session::propose() {
    const FloatEnvironment environment;
    Stopwatch watch(seconds_.draft);
    t_.noise.begin(sampling_.seed, committed_ + 1);
    DraftContext context{pending_, sampling_.filters, upload(history_.edits()), nullptr};
    if (sampling_.filters.temperature > 0) context.noise = &t_.noise;
    return drafter_.propose(context);
}

NodeList Session::verify(const TokenTree& tree) {
    const FloatEnvironment environment;
    check_tokens(tree.tokens, target_.config());
    const double before = seconds_.target();
    const NodeList choices = pass(tree);
    verify_seconds_ = seconds_.target() - before;
    return choices;
}

NodeList Session::pass(const TokenTree& tree) {
    {
        Stopwatch watch(seconds_.verify);
        forward(verify_rows(tree, committed_), tree.size());
    }
    Stopwatch watch(seconds_.sample);
    const NodeList depth = depths(tree);
    return choose({t_.rows.row_range(0, tree.size())}, history_.edits(tree),
                  *std::max_element(depth.begin(), depth.end()) + 1);
}

Turn Session::commit(const TokenTree& tree, const Path& path) {
    const FloatEnvironment environment;
    const int count = int(path.nodes.size());
    Turn turn;
    for (int i = 1; i < count; ++i) turn.tokens.push_back(tree.tokens[size_t(path.nodes[i])]);
    turn.tokens.push_back(path.next);
    turn.logprobs = read_logprobs(path.nodes, turn.tokens);

    observe(keep(path.nodes), turn.tokens, committed_);
    drafter_.learn(tree, path.nodes, path.next, verify_seconds_);
    committed_ += count;
    advance(turn.tokens);
    return turn;
}

// Moves what the pass computed for these nodes to where the text goes on: keys and values to the
// committed slots, features to one tensor, which is returned. The first nodes of a tree, as after
// a plain pass, are in their place.
Tensor Session::keep(std::span<const int> nodes) {
    const int count = int(nodes.size());
    if (nodes.back() == count - 1) return t_.features.row_range(0, count);
    DepthList<KvMove> moves;
    for (int i = 0; i < count; ++i) moves.push_back({0, committed_ + nodes[i], committed_ + i});
    const Tensor device_moves = t_.moves.row_range(0, count), index = t_.index.col_range(0, count);
    be_.write(device_moves, moves.data());
    kv_.compact(device_moves);
    be_.write(index, nodes.data());
    const Tensor features = t_.accepted_features.row_range(0, count);
    if (features.cols > 0) be_.run(GatherRows{features, t_.features, index});
    return features;
}

void Session::forward(std::span<const Row> rows, int logit_rows) {
    const int count = int(rows.size());
    const Tensor block = t_.rows.row_range(0, count);
    be_.write(block, rows.data());
    const auto pass = [&] {
        target_.forward({{block},
                         &kv_,
                         reach_.taps,
                         t_.features.row_range(0, count),
                         t_.logits.row_range(0, logit_rows)});
    };
    if (count > kMaxNodes)
        pass();  // a piece of a prompt: its size seldom comes again
    else
        be_.replay(replays_.of({uint64_t(count), uint64_t(logit_rows)}), std::ref(pass));
}

void Session::reserve_edits(int count) {
    edit_memory_ = be_.allocate(dense_bytes(DType::I32, count, kEditInts));
    edit_capacity_ = count;  // only now: the allocation may fail
}

Tensor Session::upload(std::span<const Edit> edits) {
    if (edits.empty()) return {};
    const int count = int(edits.size());
    if (count > edit_capacity_) reserve_edits(2 * count);
    const Tensor device = dense(edit_memory_.get(), DType::I32, count, kEditInts);
    be_.write(device, edits.data());
    return device;
}

// The target's choice after each of `rows`, which span `depths` depths.
NodeList Session::choose(Rows rows, std::span<const Edit> edits, int depths) {
    Sample step;
    step.choice = {t_.logits.row_range(0, rows.count()), upload(edits), {}, sampling_.filters};
    step.rows = rows;
    if (sampling_.filters.temperature > 0) step.noise = t_.noise.rows(be_, depths);
    step.ids = t_.ids.col_range(0, rows.count());
    be_.run(step);
    NodeList choices;
    choices.resize(size_t(rows.count()));
    be_.read(step.ids, choices.data());
    for (int choice : choices)
        if (choice < 0)
            throw Error("the model computed NaN for every token; its weights are damaged");
    return choices;
}

DepthList<float> Session::read_logprobs(std::span<const int> nodes, std::span<const int> tokens) {
    DepthList<float> logprobs;
    if (!with_logprobs_) return logprobs;
    for (size_t i = 0; i < nodes.size(); ++i) {
        be_.read(t_.logits.row_range(nodes[i], 1), logits_.data());
        const double logprob = log_probability(logits_, tokens[i]);
        if (std::isnan(logprob))
            throw Error("the model computed NaN or infinity; its weights are damaged");
        logprobs.push_back(float(logprob));
    }
    return logprobs;
}

void Session::observe(Tensor features, std::span<const int> next_tokens, int position) {
    Stopwatch watch(seconds_.draft);
    drafter_.observe(features, next_tokens, position);
}

void Session::advance(std::span<const int> tokens) {
    for (int token : tokens) history_.add_output(token);
    pending_ = tokens.back();
}

}  // namespace aerie
