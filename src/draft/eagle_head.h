// The EAGLE-1/2 draft head: one decoder layer that extrapolates the target's features
// (EAGLE section 4.1; eagle.md sections 1 and 2).
#pragma once

#include "model/decoder_layer.h"
#include "model/kv_cache.h"
#include "model/target.h"

namespace aerie {

struct HeadLimits {
    int rows = 0;       // most rows of a pass
    int positions = 0;  // RoPE table
    KvShape kv;
};

struct HeadScratch {
    void add_to(TensorPlan& plan, const ModelConfig& config, int rows);

    Activations layer;
    Tensor pair;                    // [rows, 2 hidden]: embedding beside feature
    Tensor pair_input, head_input;  // read by matmuls: the pair, and the prediction
};

class EagleHead {
  public:
    // Throws Error if the head's sizes do not fit the target's.
    EagleHead(Backend& be, const ModelConfig& config, const Checkpoint& checkpoint,
              std::optional<DType> weights, const Target& target, const HeadLimits& limits);

    const Target& target() const { return target_; }

    // out [M, hidden]: the predicted next features of rows with their tokens and features [M,
    // hidden].
    void forward(Tensor out, Tensor features, Rows rows);
    // out [M, vocab]: the target's LM head, stored as lm_head_type says, over predicted features.
    void logits(Tensor out, Tensor hidden);

  private:
    Backend& be_;
    ModelConfig config_;
    const Target& target_;
    std::unique_ptr<Weight> embedding_, fc_;
    std::unique_ptr<Weight> lm_head_;  // absent: the target's own
    Vector fc_bias_, rope_;
    std::unique_ptr<DecoderLayer> layer_;
    Buffer memory_;
    HeadScratch scratch_;
    KvCache kv_;
};

// Throws Error, naming `head`, if a head of this shape cannot draft for the target.
void check_head_fits(const ModelConfig& head, const ModelConfig& target, const std::string& folder);

// The type that the target's LM head has where a head drafts with it: `weights`, or that of the
// head's own fc.
DType lm_head_type(const Checkpoint& head, std::optional<DType> weights);

// What a head allocates besides its weights.
size_t head_scratch_bytes(const ModelConfig& config, const HeadLimits& limits);

}  // namespace aerie
