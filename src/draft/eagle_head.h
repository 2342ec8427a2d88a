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
    void add_to(TensorPlan& plan, const ModelConfig& config, int rows, DType activation);

    Activations layer;
    Tensor pair;                    // [rows, 2 hidden]: embedding beside feature
    Tensor pair_input, head_input;  // the pair, and the prediction, as matmuls read them
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
    // out [M, vocab]: the target's LM head, in the type of this head's weights, over predicted
    // features.
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

// What a head allocates besides its weights; `activation` as in target_scratch_bytes.
size_t head_scratch_bytes(const ModelConfig& config, const HeadLimits& limits, DType activation);

}  // namespace aerie
