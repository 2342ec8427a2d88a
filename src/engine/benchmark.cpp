// The rounds of a benchmark. A pass is what a session does with a tree: rows, target, choices.
#include "engine/benchmark.h"

#include <algorithm>
#include <chrono>

#include "backend/registry.h"
#include "core/error.h"

namespace aerie {

namespace {

constexpr size_t kProbeBytes = size_t(256) << 20;
constexpr int kLeastRounds = 3, kMostRounds = 15;
constexpr double kPassSeconds = 0.03;  // what repeating a quick pass may take in a round

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

class Rounds {
  public:
    Rounds(BenchModel& model, const BenchPlan& plan)
        : model_(model),
          plan_(plan),
          probe_(model.backend().memory_probe(kProbeBytes)),
          plain_(model.with(std::make_unique<AnyTree>())) {
        if (plan.draft) {
            DraftOptions options = model.options().draft;
            full_ = level_ = options.tree;
            level_.levels = 1;
            options.shape_policy = [this] { return one_level_ ? level_ : full_; };
            drafted_ = model.with(options);
        }
        for (int rows : plan.rows) result_.passes.push_back({rows, {}});
        result_.probe_bytes = probe_->size_bytes();
        const int vocab = model.files().config.vocab;
        for (int i = 0; i < plan.prompt_tokens; ++i) prompt_.push_back(i * 7919 % vocab);
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
        begin(*plain_.session);
        plain_.session->verify(tree_of_size(kMaxNodes, model_.files().config.vocab));
        if (!plan_.draft) return;
        begin(*drafted_.session);
        drafted_.session->propose();
    }

    void round() {
        Samples read, plain;
        Session& session = *plain_.session;
        result_.prefill.add(seconds_of([&] { begin(session); }));
        probe(read);
        decode_plainly(plain);
        probe(read);
        for (PassTimes& pass : result_.passes)
            if (!cancelled()) time_pass(pass);
        if (plan_.draft && !cancelled()) time_levels();
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

    void begin(Session& session) {
        session.begin({});
        session.prefill(prompt_, plan_.cancelled);
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

    // A level is what a tree of several levels takes longer than one of a single level.
    void time_levels() {
        if (full_.levels < 2) return;
        Session& session = *drafted_.session;
        begin(session);
        double used = 0;
        for (int i = 0; i < 16 && used < kPassSeconds; ++i) {
            one_level_ = true;
            const double shallow = seconds_of([&] { session.propose(); });
            one_level_ = false;
            const double deep = seconds_of([&] { session.propose(); });
            result_.draft_level.add((deep - shallow) / (full_.levels - 1));
            used += deep + shallow;
        }
    }

    BenchModel& model_;
    const BenchPlan& plan_;
    std::unique_ptr<MemoryProbe> probe_;
    BenchModel::Drafting plain_, drafted_;
    TreeShape full_, level_;
    bool one_level_ = false;
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
