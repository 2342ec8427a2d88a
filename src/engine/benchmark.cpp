// The rounds of a benchmark. A pass is what a session does with a tree: rows, target, choices.
#include "engine/benchmark.h"

#include <algorithm>
#include <chrono>

#include "backend/registry.h"
#include "core/error.h"
#include "engine/measure.h"

namespace aerie {

namespace {

constexpr size_t kProbeBytes = size_t(256) << 20;
constexpr int kLeastRounds = 3, kMostRounds = 15;
constexpr double kPassSeconds = 0.03;      // what repeating a quick pass may take in a round
constexpr double kCyclesShare = 1.0 / 60;  // of the whole time: what cycles may take in a round

double seconds_of(const std::function<void()>& action) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    action();
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Proposes bare roots, like plain decoding, but lets any tree be verified.
class AnyTree final : public Drafter {
  public:
    DraftReach reach() const override { return {kMaxNodes, kMaxDepth, {}}; }
    void observe(Tensor, std::span<const int>, int) override {}
    TokenTree propose(const DraftContext& context) override { return TokenTree(context.pending); }
};

// A binary tree of this many nodes with arbitrary tokens.
TokenTree tree_of_size(int nodes, int vocab) {
    TokenTree tree(1);
    for (int i = 1; i < nodes; ++i) tree.add(i * 37 % vocab, (i - 1) / 2);
    return tree;
}

std::string text_of(const TreeShape& shape) {
    return std::to_string(shape.nodes) + "," + std::to_string(shape.levels) + "," +
           std::to_string(shape.top_k);
}

void begin(Session& session, const std::vector<int>& prompt) {
    session.begin({});
    session.prefill(prompt);
}

// Cycles of EAGLE-2 with one setting of its tree (none: --tree auto), whose acceptance is forced.
class CycleBench {
  public:
    CycleBench(BenchModel& model, const BenchPlan& plan, const std::vector<int>& prompt,
               const std::optional<TreeShape>& tree)
        : forced_(*plan.acceptance),
          prompt_(prompt),
          full_(tree.value_or(TreeShape{})),
          is_auto_(!tree),
          most_seconds_(plan.seconds * kCyclesShare) {
        if (plan.tau) forced_.rescale(*plan.tau);
        DraftOptions options = model.options().draft;
        options.tree = tree;
        if (tree)
            options.shape_policy = [this] {
                return TreeShape{full_.nodes, one_level_ ? 1 : full_.levels, full_.top_k};
            };
        options.on_level = [this](std::span<Candidate> table, int first, int last) {
            forced_.level(table, first, last);
        };
        drafting_ = model.with(options);
        if (CostAware* drafter = drafting_.drafter->cost_aware())
            drafter->set_costs(measure_costs(session(), *drafter, kMeasureSeconds));
        tau_ = forced_.tau(full_);
        forced_.restart();
        begin(session(), prompt_);
        session().propose();
    }

    // Adds a level's time: what a tree of several takes longer than one of a single level.
    void time_level(Samples& level) {
        if (is_auto_ || full_.levels < 2) return;
        const auto propose = [&] { session().propose(); };
        propose();  // the features of the last cycle are read first
        double used = 0;
        for (int i = 0; i < 16 && used < kPassSeconds; ++i) {
            one_level_ = true;
            const double shallow = seconds_of(propose);
            one_level_ = false;
            const double deep = seconds_of(propose);
            level.add((deep - shallow) / (full_.levels - 1));
            used += deep + shallow;
        }
    }

    // Some cycles; `plain` is the time of a token decoded plainly in this round.
    void round(double plain) {
        constexpr int kLeast = 3, kMost = 64;
        PhaseSeconds phases;
        double total = 0;
        int cycles = 0;
        while (cycles < kLeast || (cycles < kMost && total < most_seconds_)) {
            total += cycle(phases);
            ++cycles;
        }
        times_.seconds.add(total / cycles);
        times_.draft.add(phases.draft / cycles);
        times_.verify.add(phases.verify / cycles);
        times_.rest.add((total - phases.draft - phases.verify) / cycles);
        times_.cycles += cycles;
        plain_.push_back(plain);
    }

    CycleTimes times() const {
        CycleTimes times = times_;
        times.tree = is_auto_ ? "auto" : text_of(full_);
        times.tau = is_auto_ ? double(tokens_) / times.cycles : tau_;
        times.tree_nodes = double(nodes_) / times.cycles;
        for (size_t i = 0; i < plain_.size(); ++i)
            times.speedup.add(plain_[i] * times.tau / times.seconds.values()[i]);
        return times;
    }

  private:
    Session& session() { return *drafting_.session; }

    // Seconds of one cycle, without what forcing takes after the pass.
    double cycle(PhaseSeconds& phases) {
        if (session().committed() + kMaxDepth + 2 > session().context()) begin(session(), prompt_);
        const PhaseSeconds before = session().seconds();
        TokenTree tree(0);
        const double drafted = seconds_of([&] {
            tree = session().propose();
            session().verify(tree);
        });
        const Path path = accept(tree, forced_.choices(tree));
        nodes_ += tree.size();
        tokens_ += int64_t(path.nodes.size());
        const double committed = seconds_of([&] { session().commit(tree, path); });
        phases.draft += session().seconds().draft - before.draft;
        phases.verify += session().seconds().verify - before.verify;
        return drafted + committed;
    }

    ForcedAcceptance forced_;
    const std::vector<int>& prompt_;
    TreeShape full_;  // where it is fixed
    bool is_auto_;
    double most_seconds_;  // of a round
    bool one_level_ = false;
    BenchModel::Drafting drafting_;
    double tau_ = 0;  // of the fixed tree, over the whole record
    int64_t nodes_ = 0, tokens_ = 0;
    std::vector<double> plain_;
    CycleTimes times_;
};

class Rounds {
  public:
    Rounds(BenchModel& model, const BenchPlan& plan)
        : model_(model),
          plan_(plan),
          probe_(model.backend().memory_probe(kProbeBytes)),
          plain_(model.with(std::make_unique<AnyTree>())) {
        const int vocab = model.files().config.vocab;
        for (int i = 0; i < plan.prompt_tokens; ++i) prompt_.push_back(i * 7919 % vocab);
        for (int rows : plan.rows) result_.passes.push_back({rows, {}});
        result_.probe_bytes = probe_->size_bytes();
        if (!plan.acceptance) return;
        // The tree that was asked for, else the chosen one and the paper's.
        const auto& tree = model.options().draft.tree;
        cycles_.push_back(
            std::make_unique<CycleBench>(model, plan, prompt_, tree.value_or(TreeShape{})));
        if (!tree)
            cycles_.push_back(std::make_unique<CycleBench>(model, plan, prompt_, std::nullopt));
    }

    BenchResult run() {
        say("warming up");
        warm_up();
        double used = 0;
        while (!cancelled() && result_.rounds < kMostRounds &&
               (result_.rounds < kLeastRounds || used < plan_.seconds)) {
            say("round " + std::to_string(result_.rounds + 1));
            used += seconds_of([&] { round(); });
            ++result_.rounds;
        }
        for (const auto& cycles : cycles_) result_.cycles.push_back(cycles->times());
        result_.cancelled = cancelled();
        return std::move(result_);
    }

  private:
    void say(const std::string& what) {
        if (plan_.on_progress) plan_.on_progress(what);
    }
    bool cancelled() const { return plan_.cancelled && plan_.cancelled(); }

    // Touches all weights and buffers once.
    void warm_up() {
        probe_->read();
        probe_->copy();
        begin(*plain_.session, prompt_);
        plain_.session->verify(tree_of_size(kMaxNodes, model_.files().config.vocab));
    }

    void round() {
        Samples read, plain;
        Session& session = *plain_.session;
        result_.prefill.add(seconds_of([&] { begin(session, prompt_); }));
        probe(read);
        decode_plainly(plain);
        probe(read);
        for (PassTimes& pass : result_.passes)
            if (!cancelled()) time_pass(pass);
        for (const auto& cycles : cycles_) {
            if (cancelled()) return;
            cycles->time_level(result_.draft_level);
            cycles->round(plain.median());
        }
        const double read_rate = double(probe_->size_bytes()) / read.median();
        const double rate = double(model_.pass_bytes()) / plain.median();
        result_.read_share.add(rate / read_rate);
        result_.read.add(read);
        result_.plain.add(plain);
    }

    void probe(Samples& read) {
        for (int i = 0; i < 4; ++i) read.add(seconds_of([&] { probe_->read(); }));
        for (int i = 0; i < 2; ++i) result_.copy.add(seconds_of([&] { probe_->copy(); }));
    }

    double decode_token() {
        Session& session = *plain_.session;
        return seconds_of([&] {
            const TokenTree tree = session.propose();
            const auto choices = session.verify(tree);
            session.commit(tree, accept(tree, choices));
        });
    }

    void decode_plainly(Samples& plain) {
        constexpr int kLeast = 4, kMost = 32;
        decode_token();  // a small model comes back into the caches that a probe has emptied
        double used = 0;
        for (int i = 0; i < kMost && (i < kLeast || used < 10 * kPassSeconds); ++i) {
            const double seconds = decode_token();
            plain.add(seconds);
            used += seconds;
        }
    }

    // Nothing is committed, so the pass can be repeated.
    void time_pass(PassTimes& pass) {
        const TokenTree tree = tree_of_size(pass.rows, model_.files().config.vocab);
        double used = 0;
        for (int i = 0; i < 16 && used < kPassSeconds; ++i) {
            const double seconds = seconds_of([&] { plain_.session->verify(tree); });
            pass.seconds.add(seconds);
            used += seconds;
        }
    }

    BenchModel& model_;
    const BenchPlan& plan_;
    std::unique_ptr<MemoryProbe> probe_;
    BenchModel::Drafting plain_;
    std::vector<std::unique_ptr<CycleBench>> cycles_;
    std::vector<int> prompt_;
    BenchResult result_;
};

SessionLimits limits_of(const ModelFiles& files, const RuntimeOptions& options) {
    return {files.context, options.kv, options.prefill_rows};
}

}  // namespace

void Samples::add(const Samples& more) {
    values_.insert(values_.end(), more.values_.begin(), more.values_.end());
}

double Samples::median() const {
    if (values_.empty()) return 0;
    std::vector<double> sorted = values_;
    std::sort(sorted.begin(), sorted.end());
    const size_t middle = sorted.size() / 2;
    return sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double Samples::min() const {
    return values_.empty() ? 0 : *std::min_element(values_.begin(), values_.end());
}

double Samples::max() const {
    return values_.empty() ? 0 : *std::max_element(values_.begin(), values_.end());
}

BenchModel::BenchModel(ModelFiles files, const RuntimeOptions& options)
    : files_(std::move(files)),
      options_(options),
      backend_(open_device(options.device, {options.threads})) {
    const SessionLimits limits = limits_of(files_, options_);
    backend_->reserve(backend_limits(files_.config, limits));
    if (options.on_progress) options.on_progress("loading " + files_.checkpoint.folder().string());
    target_ = make_target(*backend_, files_.config, files_.checkpoint, options.weights,
                          target_limits(limits));
}

BenchModel::Drafting BenchModel::with(std::unique_ptr<Drafter> drafter) {
    Drafting result;
    result.drafter = std::move(drafter);
    result.session = std::make_unique<Session>(*backend_, *target_, *result.drafter,
                                               limits_of(files_, options_));
    return result;
}

BenchModel::Drafting BenchModel::with(const DraftOptions& options) {
    return with(make_eagle(
        {*backend_, *target_, *files_.head_config, *files_.head_checkpoint, files_.draft_weights,
         options_.kv, files_.context, std::max(options_.prefill_rows, kMaxNodes)},
        options));
}

DType BenchModel::weights() const {
    return matrix_type(files_.checkpoint, options_.weights);
}

DType BenchModel::draft_weights() const {
    return matrix_type(*files_.head_checkpoint, files_.draft_weights);
}

size_t BenchModel::pass_bytes() const {
    const ModelConfig& config = files_.config;
    const size_t all = files_.plan(options_, *backend_).target_weights;
    return config.tied_embeddings ? all : all - dense_bytes(weights(), config.vocab, config.hidden);
}

BenchResult run_benchmark(BenchModel& model, const BenchPlan& plan) {
    return Rounds(model, plan).run();
}

}  // namespace aerie
