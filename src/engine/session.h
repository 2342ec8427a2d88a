// State of one generation: what is committed, what is pending, and the steps of a cycle.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "backend/replay_keys.h"
#include "backend/tensor_plan.h"
#include "draft/drafter.h"
#include "engine/accept.h"
#include "engine/sampling.h"
#include "model/target.h"

namespace aerie {

constexpr int kPrefillRows = 128;  // rows of a prefill pass; any number gives the same bits

struct SessionLimits {
    int context = 0;  // most tokens of prompt and output together
    DType kv = DType::F16;
    int prefill_rows = kPrefillRows;
};

// Tokens newly chosen by the target, the last of which is now pending. logprobs (of the unprocessed
// logits) are there only when asked for.
struct Turn {
    DepthList<int> tokens;
    DepthList<float> logprobs;
};

// Seconds spent in the parts of the cycles.
struct PhaseSeconds {
    double draft = 0, verify = 0, sample = 0;

    double target() const { return verify + sample; }
};

// Device memory of a session besides the KV cache.
struct SessionTensors {
    void add_to(TensorPlan& plan, const ModelConfig& config, const SessionLimits& limits,
                const DraftReach& reach);

    Tensor rows;               // [rows, kRowInts]
    Tensor features;           // [rows, taps * hidden], of the last target pass
    Tensor accepted_features;  // [depths, taps * hidden]
    Tensor logits;             // [nodes, vocab]
    Tensor ids;                // [1, nodes]: the target's choices
    Tensor index;              // [1, depths]
    Tensor moves;              // [depths, kKvMoveInts]
    NoiseRows noise;
};

class Session {
  public:
    Session(Backend& be, Target& target, Drafter& drafter, const SessionLimits& limits);

    // A new sequence; forgets the former one.
    void begin(const Sampling& sampling, bool with_logprobs = false);
    // The target reads the prompt and picks the pending token. `cancelled` is asked between passes;
    // if it says yes the turn is empty. Throws UsageError for an empty prompt or one that leaves no
    // room.
    Turn prefill(std::span<const int> prompt, const std::function<bool()>& cancelled = {});
    TokenTree propose();
    // One target pass; the token that the target chooses after each node.
    NodeList verify(const TokenTree& tree);
    Turn commit(const TokenTree& tree, const Path& path);

    int context() const { return limits_.context; }
    int committed() const { return committed_; }  // positions in the KV cache; pending comes next
    const PhaseSeconds& seconds() const { return seconds_; }
    KvCache& kv() { return kv_; }
    Tensor logits() const { return t_.logits; }  // of the last verify (row 0: of the prefill)
    Tensor features() const { return t_.features; }

  private:
    NodeList pass(const TokenTree& tree);
    Tensor keep(std::span<const int> nodes);
    void forward(std::span<const Row> rows, int logit_rows);
    void reserve_edits(int count);
    Tensor upload(std::span<const Edit> edits);
    NodeList choose(Rows rows, std::span<const Edit> edits, int depths);
    DepthList<float> read_logprobs(std::span<const int> nodes, std::span<const int> tokens);
    void observe(Tensor features, std::span<const int> next_tokens, int position);
    void advance(std::span<const int> tokens);

    Backend& be_;
    Target& target_;
    Drafter& drafter_;
    SessionLimits limits_;
    DraftReach reach_;
    KvCache kv_;
    ReplayKeys replays_;
    Buffer memory_, edit_memory_;
    SessionTensors t_;
    int edit_capacity_ = 0;

    Sampling sampling_;
    bool with_logprobs_ = false;
    TokenHistory history_;
    std::vector<float> logits_;  // of one row, for read_logprobs
    int committed_ = 0;
    int pending_ = 0;
    PhaseSeconds seconds_;
    double verify_seconds_ = 0;  // of the newest target pass and its choices
};

// Rows that a session's target passes may have, and positions that they may reach.
TargetLimits target_limits(const SessionLimits& limits);

// The target's KV cache: the context and a whole tree at its very end.
KvShape kv_shape(const ModelConfig& config, const SessionLimits& limits, const DraftReach& reach);

// What a Session allocates, KV cache included, besides scratch of the backend.
size_t session_bytes(const ModelConfig& config, const SessionLimits& limits,
                     const DraftReach& reach);

// Scratch that a backend needs for this session.
Limits backend_limits(const ModelConfig& config, const SessionLimits& limits);

}  // namespace aerie
