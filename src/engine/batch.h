// The passes of some texts at a time: device buffers and recordings, and the steps of a cycle.
#pragma once

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

constexpr int kPrefillRows = 128;  // rows of a prefill pass; any number gives the same bits

struct BatchLimits {
    int context = 0;  // most tokens of prompt and output of a text together
    DType kv = DType::F16;
    int prefill_rows = kPrefillRows;
    int texts = 1;  // in one pass
    int kept = 0;   // that there are, passed at a time or not; 0: as many
    Clock clock = steady_seconds;

    int sequences() const { return std::max(texts, kept); }

    int pass_rows() const { return std::max(prefill_rows, texts * kMaxNodes); }
};

// Tokens newly chosen by the target, the last of which is now pending. logprobs (of the unprocessed
// logits) are there only when asked for.
struct Turn {
    DepthList<int> tokens;
    DepthList<float> logprobs;
    std::vector<TokenLogprob> alternatives;  // the same number in the place of each token
};

// What a cycle makes of one text.
struct Cycle {
    Sequence* text = nullptr;
    TokenTree tree{0};
    Drawn drawn;       // what the tree was drawn from, if it was
    NodeList choices;  // the target's, after each node; of a tree that was drawn, on the way taken
    Path path;
    Turn turn;
};

// Seconds spent in the parts of the cycles.
struct PhaseSeconds {
    double draft = 0, verify = 0, sample = 0;

    double target() const { return verify + sample; }
};

// Device memory of a batch.
struct BatchTensors {
    struct OfText {
        Tensor accepted_features;  // [depths, taps * hidden]
        Tensor rule;               // [1, kRowChoiceInts]
        Tensor noise_positions;    // [1, depths]
        NoiseRows noise;           // a part of the batch's
    };
    void add_to(TensorPlan& plan, const ModelConfig& config, const BatchLimits& limits,
                const DraftReach& reach);

    Tensor rows;                // [rows, kRowInts]
    Tensor features;            // [rows, taps * hidden], of the last target pass
    Tensor logits;              // [texts * nodes, vocab]
    Tensor ids;                 // [1, texts * nodes]: the target's choices
    Tensor rules;               // [texts * nodes, kRowChoiceInts], where texts are mixed
    Tensor seen;                // [texts, vocab]
    Tensor noise;               // [texts * depths, vocab]
    Tensor noise_copy;          // [1, vocab]
    Tensor accepted;            // [1, texts * depths * (kKvMoveInts + 1)]: see Batch::compact
    std::vector<OfText> texts;  // by sequence
};

// Everything on the device is allocated in the constructor.
class Batch {
  public:
    Batch(Backend& be, Target& target, KvPool& kv, Drafter& drafter, const BatchLimits& limits);

    // The target reads what of a text is not in the cache, and picks its pending token. `cancelled`
    // is asked between passes; if it says yes the turn is empty.
    Turn prefill(Sequence& text, const std::function<bool()>& cancelled = {});
    // The steps of a cycle, each of all texts; then comes the next one.
    void propose(std::span<Cycle> cycles);
    void verify(std::span<Cycle> cycles);  // one target pass
    void commit(std::span<Cycle> cycles);

    const BatchLimits& limits() const { return limits_; }
    const PhaseSeconds& seconds() const { return seconds_; }
    void reset_seconds() { seconds_ = {}; }
    Tensor logits() const { return t_.logits; }  // of the last verify (row 0: of the prefill)
    Tensor features() const { return t_.features; }

  private:
    BatchTensors::OfText& tensors_of(Sequence& text) {
        return t_.texts[size_t(text.pages().sequence())];
    }
    void forward(int logit_rows);
    void begin_choices(Sequence& text);
    Rules rules_of(Sequence& text);
    Tensor rule_rows(std::span<const Cycle> cycles);
    void edit_logits(std::span<const Cycle> cycles);
    void edit_logits(const Sequence& text, std::span<const int> tokens, int row);
    bool is_forbidden(int row) const;
    void end_where_forbidden(Cycle& cycle, int first) const;
    std::span<const float> raw_logits(int row);
    void choose(std::span<Cycle> cycles);
    void choose_by_noise(std::span<Cycle> cycles);
    void choose_by_ratio(Cycle& cycle, int first);
    std::span<const int> sample(int first, int count, const Rules& rules, bool with_noise);
    static bool is_in_place(std::span<const int> nodes);
    void compact(std::span<const Cycle> cycles);
    void commit(Cycle& cycle, int first);
    Tensor features_of(Sequence& text, std::span<const int> nodes, int first);
    void observe(Sequence& text, int first, Tensor features, bool is_prompt);
    void read_logprobs(const Sequence& text, std::span<const int> nodes, int first, Turn& turn);

    Backend& be_;
    Target& target_;
    KvPool& kv_;
    Drafter& drafter_;
    BatchLimits limits_;
    DraftReach reach_;
    ReplayKeys replays_;
    Buffer memory_;
    BatchTensors t_;
    std::vector<Row> rows_;  // of the pass being written
    std::vector<RowChoice> rules_;
    std::vector<int> choices_;       // the newest
    std::vector<int32_t> accepted_;  // of the newest commit
    int next_accepted_ = 0;          // where rows of the pass stand in it, of the next text
    std::vector<float> logits_;      // of one row, as the host reads it
    // [row of logits]: what the model said, where a text edits it and wants logprobs; else empty.
    std::vector<std::vector<float>> unedited_;
    std::vector<int> edited_text_;  // as an edit is shown it
    std::vector<int> forbidden_;    // rows of logits whose edit forbids every token
    int first_scored_ = 0;          // row of the newest pass whose logits are the first
    PhaseSeconds seconds_;
    double verify_seconds_ = 0;  // of the newest target pass and its choices
};

// Rows that target passes may have, and positions that they may reach.
TargetLimits target_limits(const BatchLimits& limits);
// The target's KV cache: for each text the context and a whole tree at its very end.
KvShape kv_shape(const ModelConfig& config, const BatchLimits& limits, const DraftReach& reach);
// What a Batch allocates.
size_t batch_bytes(const ModelConfig& config, const BatchLimits& limits, const DraftReach& reach);
// Scratch that a backend needs for it.
Limits backend_limits(const ModelConfig& config, const BatchLimits& limits);

}  // namespace aerie
