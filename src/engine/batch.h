// Passes over one or several sequences: device buffers, recordings, and the steps of a cycle.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <vector>

#include "backend/replay_keys.h"
#include "backend/tensor_plan.h"
#include "core/clock.h"
#include "engine/accept.h"
#include "engine/sequence.h"
#include "model/target.h"

namespace aerie {

constexpr const char* kOnlyNan = "the model computed NaN for every token; its weights are damaged";

constexpr const char* kAllForbidden =
    "edit_logits forbids every token; at least one must be above -infinity";

constexpr int kPrefillRows = 128;  // rows of a prefill pass; all numbers give the same bits
// Rows of all prompts together that a pass has room for beside the trees of other sequences.
constexpr int kPieceRows = 64;
// Most rows of trees in a pass. A round whose trees have more takes several passes: the rows of a
// large pass cost as much each, and their logits take memory.
constexpr int kTreeRows = 2 * kMaxNodes;
constexpr int kMaxTogether = 64;  // most sequences of a round

struct BatchLimits {
    int context = 0;  // most tokens of a sequence, prompt and output together
    DType kv = DType::F16;
    int prefill_rows = kPrefillRows;
    int sequences_in_pass = 1;
    int open_sequences = 0;  // in a pass or not; 0: as many as in a pass
    Clock clock = steady_seconds;
    // Tokens in the KV cache of all sequences together, at least a context; 0: each sequence has
    // room for a context. The slots of drafts come on top.
    int64_t cache_tokens = 0;

    int sequences() const { return std::max(sequences_in_pass, open_sequences); }

    // The rows of trees, of at most `nodes` rows each, that a pass has room for.
    int tree_rows(int nodes) const { return std::min(sequences_in_pass * nodes, kTreeRows); }
    int piece_rows() const { return sequences_in_pass > 1 ? kPieceRows : 0; }
    int pass_rows(int nodes = kMaxNodes) const {
        return std::max(prefill_rows, tree_rows(nodes) + piece_rows());
    }
};

// The tokens that the target has just chosen; the last one is now pending. logprobs, which are
// those of the unprocessed logits, are empty unless they were asked for.
struct ChosenTokens {
    DepthList<int> tokens;
    DepthList<float> logprobs;
    std::vector<TokenLogprob> alternatives;  // equally many for each token
};

// Tokens of a prompt, from the first one on that is not in the cache, that a pass runs over without
// a choice after them.
struct PromptPiece {
    Sequence* sequence = nullptr;
    int count = 0;
};

// One cycle of one sequence.
struct Cycle {
    Sequence* sequence = nullptr;
    // The cycle that ends a prompt: its tree is the prompt's last token alone, and the target's
    // choice after it begins the answer.
    bool is_first = false;
    int row = 0;  // the tree's first row in the newest pass
    // The error of this sequence alone, which the others of a pass do not notice; the rest is then
    // void, and the sequence has to forget what was computed.
    std::exception_ptr error;
    TokenTree tree{0};
    Drawn drawn;       // distributions that the tree was drawn from, if it was
    NodeList choices;  // the target's, after each node; in drawn trees only on the path
    Path path;
    ChosenTokens output;
};

// Seconds spent in the parts of the cycles.
struct PhaseSeconds {
    double draft = 0, verify = 0, sample = 0;

    double target() const { return verify + sample; }
};

// Target passes so far. Any thread may read them.
struct PassCounts {
    std::atomic<uint64_t> passes = 0;
    std::atomic<uint64_t> rows = 0;       // rows of trees and of pieces of prompts
    std::atomic<uint64_t> sequences = 0;  // with a tree in the pass
    std::atomic<uint64_t> tokens = 0;     // put out
};

// Device memory of a batch.
struct BatchTensors {
    struct SequenceTensors {
        Tensor accepted_features;  // [depths, taps * hidden]
        Tensor rule;               // [1, kRowChoiceInts]
        Tensor noise_positions;    // [1, depths]
        NoiseRows noise;           // uses a part of the batch's noise
    };
    void add_to(TensorPlan& plan, const ModelConfig& config, const BatchLimits& limits,
                const DraftReach& reach);

    Tensor rows;        // [rows, kRowInts]
    Tensor features;    // [rows, taps * hidden]: from the last target pass
    Tensor logits;      // [tree rows, vocab]
    Tensor ids;         // [1, tree rows]: the target's choices
    Tensor rules;       // [tree rows, kRowChoiceInts]: used with several sequences
    Tensor seen;        // [sequences, vocab]
    Tensor noise;       // [sequences * depths, vocab]
    Tensor noise_copy;  // [1, vocab]
    Tensor accepted;    // [1, sequences * depths * (kKvMoveInts + 1)]; see Batch::compact
    std::vector<SequenceTensors> by_sequence;
};

// Runs the cycles of sequences. All device memory is allocated in the constructor.
class Batch {
  public:
    Batch(Backend& be, Target& target, KvPool& kv, Drafter& drafter, const BatchLimits& limits);

    // Runs the target over the tokens of the sequence that are not in the cache, and chooses its
    // pending token. `cancelled` is asked between passes; if it returns true, the output is empty.
    ChosenTokens prefill(Sequence& sequence, const std::function<bool()>& cancelled = {});
    // The steps of a cycle, each for all sequences at once. An error of one sequence is in its
    // cycle; an error of the device is thrown.
    void propose(std::span<Cycle* const> cycles);
    // One target pass over these trees and pieces of prompts. A piece and the cycle after it may
    // belong to the same sequence.
    void verify(std::span<Cycle* const> cycles, std::span<const PromptPiece> pieces = {});
    void commit(std::span<Cycle* const> cycles);
    // The rows of prompts that the first pass of a round has room for beside these trees.
    int piece_rows(std::span<Cycle* const> cycles) const;
    // How many of these cycles, the first ones, a pass has room for.
    size_t cycles_of_pass(std::span<Cycle* const> cycles) const;

    const BatchLimits& limits() const { return limits_; }
    const DraftReach& reach() const { return reach_; }
    KvPool& kv() { return kv_; }
    // The number of the next answer.
    uint64_t next_number() { return answers_++; }
    // Makes a sequence that is none of `kept` forget what was computed for it, the least recently
    // used one: one without an answer, or else, if `even_answering`, another. False: none holds
    // pages.
    using DropUnused = std::function<bool(std::span<Sequence* const> kept, bool even_answering)>;
    void on_full(DropUnused drop_unused) { drop_unused_ = std::move(drop_unused); }
    bool drop_unused(std::span<Sequence* const> kept, bool even_answering) {
        return drop_unused_ && drop_unused_(kept, even_answering);
    }
    const PhaseSeconds& seconds() const { return seconds_; }
    const PassCounts& counts() const { return counts_; }
    // The cost of a pass over `rows` rows, in passes over one row; 0 if the drafter knows no costs.
    double pass_cost(int rows) const {
        const CostAware* costs = drafter_.cost_aware();
        return costs ? costs->pass_cost(rows) : 0;
    }
    void reset_seconds() { seconds_ = {}; }
    Tensor logits() const { return t_.logits; }  // the last verify's (row 0: the prefill's)
    Tensor features() const { return t_.features; }

  private:
    BatchTensors::SequenceTensors& tensors_of(Sequence& sequence) {
        return t_.by_sequence[size_t(sequence.pages().sequence())];
    }
    // The drafter, with the sequence's head.
    Drafter& drafter_for(const Sequence& sequence) {
        drafter_.use_head(sequence.answer().head);
        return drafter_;
    }
    void begin(Cycle& cycle);
    RoundShape round_of(std::span<Cycle* const> cycles) const;
    size_t propose_from(std::span<Cycle* const> cycles, size_t first);
    void add_piece(const PromptPiece& piece);
    void add_tree(Cycle& cycle);
    void forward(int logit_rows);
    void begin_choices(Sequence& sequence);
    Rules rules_of(Sequence& sequence);
    Tensor rule_rows(std::span<Cycle* const> cycles);
    void edit_logits(Cycle& cycle);
    void edit_logits(const Sequence& sequence, std::span<const int> tokens, int row);
    bool is_forbidden(int row) const;
    void end_where_forbidden(Cycle& cycle) const;
    std::span<const float> raw_logits(int row);
    void choose(std::span<Cycle* const> cycles);
    void choose_by_noise(std::span<Cycle* const> cycles);
    void choose_by_ratio(Cycle& cycle);
    void sample(int count, const Rules& rules, bool with_noise);
    static bool is_in_place(std::span<const int> nodes);
    void compact(std::span<Cycle* const> cycles);
    void commit(Cycle& cycle);
    Tensor features_of(const Cycle& cycle);
    void observe(Sequence& sequence, int first, Tensor features, bool is_prompt);
    void read_logprobs(const Cycle& cycle, ChosenTokens& output);
    int logit_row(const Cycle& cycle) const { return cycle.row - first_scored_; }

    Backend& be_;
    Target& target_;
    KvPool& kv_;
    Drafter& drafter_;
    BatchLimits limits_;
    DraftReach reach_;
    ReplayKeys replays_;
    Buffer memory_;
    BatchTensors t_;
    std::vector<Row> rows_;  // rows of the pass that is being written
    std::vector<RowChoice> rules_;
    std::vector<int> choices_;       // the newest choices
    std::vector<int32_t> accepted_;  // moves and rows of the newest commit
    int next_accepted_ = 0;          // where the next sequence's rows begin in it
    std::vector<float> logits_;      // one row, as read by the host
    // [row of logits]: the model's logits before an edit, if log-probabilities are wanted; else
    // empty.
    std::vector<std::vector<float>> unedited_;
    std::vector<int> edited_text_;  // the tokens that an edit is called with
    std::vector<int> forbidden_;    // rows of logits in which an edit forbids every token
    int first_scored_ = 0;          // row of the newest pass that has the first row of logits
    std::vector<Cycle*> in_pass_;   // cycles of the newest pass, in the order of their rows
    // The requests to the drafter, and the trees that it fills.
    std::vector<DraftRequest> drafts_;
    std::vector<TokenTree*> trees_;
    PhaseSeconds seconds_;
    PassCounts counts_;
    uint64_t answers_ = 0;
    DropUnused drop_unused_;     // may be empty
    double verify_seconds_ = 0;  // time of the newest target pass and its choices
};

// The steps of a cycle that follow propose().
void run_pass(Batch& batch, std::span<Cycle* const> cycles,
              std::span<const PromptPiece> pieces = {});

// The most rows of a target pass, and the most positions that it reaches.
TargetLimits target_limits(const BatchLimits& limits);
// Shape of the target's KV cache: each sequence has room for the context and for a whole tree
// behind its end.
KvShape kv_shape(const ModelConfig& config, const BatchLimits& limits, const DraftReach& reach);
// Bytes that a Batch allocates.
size_t batch_bytes(const ModelConfig& config, const BatchLimits& limits, const DraftReach& reach);
// Limits for which a backend must reserve scratch.
Limits backend_limits(const ModelConfig& config, const BatchLimits& limits);

}  // namespace aerie
