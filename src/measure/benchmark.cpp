// The rounds of a benchmark. A pass is what a session runs for a tree: rows, target, choices.
#include "measure/benchmark.h"

#include <algorithm>

#include "draft/stateless.h"
#include "engine/accept.h"

namespace aerie {

namespace {

constexpr int kMinRounds = 3, kMaxRounds = 15;
// The part of the whole time that the cycles of one round may take. Cycles with trees that are
// sized by measurement vary more, so more of them are needed.
constexpr double kCyclesShare = 1.0 / 60, kAutoCyclesShare = 1.0 / 20;
constexpr int kMostSequences = 1 << 16;  // counted as room in memory

// Far larger than the caches; GPUs have up to 512 MiB of them.
size_t probe_bytes(const Capabilities& device) {
    return size_t(device.kind == DeviceKind::cpu ? 256 : 4096) << 20;
}

// Proposes only the root, as plain decoding does, but lets trees of any shape be verified.
class AnyTree final : public StatelessDrafter {
  public:
    DraftReach reach() const override { return {kMaxNodes, kMaxDepth, {}}; }
    TokenTree propose(const DraftRequest& request) override {
        return TokenTree(request.tokens.back());
    }
};

// A binary tree with this many nodes and arbitrary tokens.
TokenTree tree_of_size(int nodes, int vocab) {
    TokenTree tree(1);
    for (int i = 1; i < nodes; ++i) tree.add(i * 37 % vocab, (i - 1) / 2);
    return tree;
}

class Rounds {
  public:
    Rounds(Model& model, const BenchPlan& plan)
        : model_(model),
          plan_(plan),
          probe_(model.backend().memory_probe(probe_bytes(model.backend().capabilities()))),
          plain_(model.start_session(std::make_unique<AnyTree>())) {
        const int vocab = model.files().config.vocab;
        for (int i = 0; i < plan.prompt_tokens; ++i) prompt_.push_back(i * 7919 % vocab);
        for (int rows : plan.rows) result_.passes.push_back({rows, {}});
        result_.probe_bytes = probe_->size_bytes();
        const std::optional<TreeShape>& asked = model.options().draft.tree;
        for (const int count : plan.sequences)
            sequences_.push_back(std::make_unique<SequencesBench>(
                model, SequencesBench::Plan{count, plan.seconds * kCyclesShare, prompt_, asked,
                                            plan.acceptance, plan.tau}));
        if (!plan.acceptance) return;
        add_cycles(asked);
        if (!asked) add_cycles(TreeShape{});  // the shape of the paper, for comparison
    }

    BenchResult run() {
        say("warming up");
        warm_up();
        double used = 0;
        while (!cancelled() && result_.rounds < kMaxRounds &&
               (result_.rounds < kMinRounds || used < plan_.seconds)) {
            say("round " + std::to_string(result_.rounds + 1));
            used += seconds_of([&] { round(); });
            ++result_.rounds;
        }
        for (const auto& cycles : cycles_) result_.cycles.push_back(cycles->times());
        for (const auto& sequences : sequences_) result_.sequences.push_back(sequences->times());
        if (!sequences_.empty())
            result_.most_sequences =
                most_sequences(model_.files(), model_.options(), model_.backend(), kMostSequences);
        result_.cancelled = cancelled();
        return std::move(result_);
    }

  private:
    void add_cycles(const std::optional<TreeShape>& shape) {
        ForcedAcceptance forced(*plan_.acceptance);
        if (plan_.tau) forced.rescale(*plan_.tau);
        cycles_.push_back(std::make_unique<CycleBench>(
            model_, std::move(forced),
            CycleBench::Plan{shape, plan_.seconds * (shape ? kCyclesShare : kAutoCyclesShare),
                             prompt_}));
    }

    void say(const std::string& what) {
        if (plan_.on_progress) plan_.on_progress(what);
    }
    bool cancelled() const { return plan_.cancelled && plan_.cancelled(); }

    // Reads all weights and uses all buffers once.
    void warm_up() {
        probe_->read();
        probe_->copy();
        begin();
        plain_.session->verify(tree_of_size(kMaxNodes, model_.files().config.vocab));
        count_commands();
        for (const auto& cycles : cycles_)
            if (!cancelled()) cycles->warm_up();
        for (const auto& sequences : sequences_)
            if (!cancelled()) sequences->warm_up();
    }

    // The timed cycles force their acceptance, which adds commands, so a cycle without it is
    // counted.
    void count_commands() {
        if (model_.backend().command_counts().dispatches == 0) return;
        decode_token(*plain_.session);
        result_.token_commands = commands_of([&] { decode_token(*plain_.session); });
        if (!plan_.acceptance) return;
        DraftOptions options = model_.options().draft;
        options.tree = TreeShape{};
        const Model::Drafting drafting = model_.start_session(options);
        drafting.session->begin({});
        drafting.session->prefill(prompt_);
        decode_token(*drafting.session);
        result_.cycle_commands = commands_of([&] { decode_token(*drafting.session); });
    }

    template <class Work>
    CommandCounts commands_of(const Work& work) {
        const CommandCounts before = model_.backend().command_counts();
        work();
        const CommandCounts after = model_.backend().command_counts();
        return {after.dispatches - before.dispatches, after.barriers - before.barriers,
                after.submissions - before.submissions, after.recordings - before.recordings,
                after.bytes_read - before.bytes_read};
    }

    void round() {
        Timings read, plain;
        result_.prefill.add(seconds_of([&] { begin(); }));
        probe(read);
        decode_plainly(plain);
        probe(read);
        for (PassTimes& pass : result_.passes)
            if (!cancelled()) time_pass(pass);
        for (const auto& cycles : cycles_) {
            if (cancelled()) return;
            cycles->time_level(result_.draft_level);
            Timings beside;
            decode_plainly(beside);
            cycles->round();
            decode_plainly(beside);
            cycles->compare(beside.mean());
            result_.plain.add(beside);
        }
        for (const auto& sequences : sequences_)
            if (!cancelled()) sequences->round();
        const double read_rate = double(probe_->size_bytes()) / read.median();
        const double rate = double(model_.pass_bytes()) / plain.median();
        result_.read_share.add(rate / read_rate);
        result_.read.add(read);
        result_.plain.add(plain);
    }

    void probe(Timings& read) {
        for (int i = 0; i < 4; ++i) read.add(probe_->read());
        for (int i = 0; i < 2; ++i) result_.copy.add(probe_->copy());
    }

    void begin() {
        plain_.session->begin({});
        plain_.session->prefill(prompt_, plan_.cancelled);
    }

    static double decode_token(Session& session) {
        return seconds_of([&] {
            const TokenTree tree = session.propose();
            const auto choices = session.verify(tree);
            session.commit(tree, accept(tree, choices));
        });
    }

    void decode_plainly(Timings& plain) {
        constexpr int kLeast = 4, kMost = 32;
        decode_token(
            *plain_.session);  // a small model comes back into the caches that a probe has emptied
        double used = 0;
        for (int i = 0; i < kMost && (i < kLeast || used < 10 * kRepeatSeconds); ++i) {
            const double seconds = decode_token(*plain_.session);
            plain.add(seconds);
            used += seconds;
        }
    }

    // Nothing is committed, so the pass can be repeated.
    void time_pass(PassTimes& pass) {
        const TokenTree tree = tree_of_size(pass.rows, model_.files().config.vocab);
        double used = 0;
        for (int i = 0; i < 16 && used < kRepeatSeconds; ++i) {
            const double seconds = seconds_of([&] { plain_.session->verify(tree); });
            pass.seconds.add(seconds);
            used += seconds;
        }
    }

    Model& model_;
    const BenchPlan& plan_;
    std::unique_ptr<MemoryProbe> probe_;
    Model::Drafting plain_;
    std::vector<std::unique_ptr<CycleBench>> cycles_;
    std::vector<std::unique_ptr<SequencesBench>> sequences_;
    std::vector<int> prompt_;
    BenchResult result_;
};

}  // namespace

BenchResult run_benchmark(Model& model, const BenchPlan& plan) {
    return Rounds(model, plan).run();
}

}  // namespace aerie
