// The EAGLE-1/2 draft head: one decoder layer that extrapolates the target's features
// (EAGLE section 4.1; eagle.md sections 1 and 2).
#pragma once

#include "draft/head.h"
#include "model/decoder_layer.h"

namespace aerie {

// What a head holds on a device, whoever drafts with it.
struct EagleWeights final : DraftWeights {
    // Throws Error if the head does not fit the target.
    explicit EagleWeights(const DraftSource& source);

    const Weight& lm_head(const Target& target) const {
        return own_lm_head ? *own_lm_head : target.lm_head();
    }

    std::unique_ptr<Weight> embedding;  // absent: the target's
    std::unique_ptr<Weight> fc;         // [hidden, 2 hidden]
    Vector fc_bias;                     // may be absent
    std::unique_ptr<DecoderLayer> layer;
    // The target's, stored as lm_head_type says, or the rows of `target_ids`; absent: its own.
    std::unique_ptr<Weight> own_lm_head;
    TargetIds target_ids;
};

struct EagleScratch {
    void add_to(TensorPlan& plan, const ModelConfig& config, int rows);

    Activations layer;
    Tensor pair;                    // [rows, 2 hidden]: embedding beside feature
    Tensor pair_input, head_input;  // read by matmuls: the pair, and the prediction
};

// fc(embedding, feature) -> one layer without input norm; logits by the target's LM head. A node's
// state is the feature that it predicts.
class EagleLevels final : public LevelModel {
  public:
    // source.weights must be EagleWeights.
    EagleLevels(const DraftSource& source, const GrownReach& reach);

    int token_lead() const override { return 1; }
    int state_columns() const override { return config_.hidden; }
    int feature_columns() const override { return config_.hidden; }
    int vocab() const override { return weights_->lm_head(target_).rows; }
    Tensor target_ids() const override { return weights_->target_ids; }
    KvPool& kv() override { return kv_; }

    void read(Tensor state, Tensor features, Rows rows) override { run(state, {features}, rows); }
    void forward(Tensor state, const ParentStates& parents, Rows rows, int) override {
        run(state, parents, rows);
    }
    void logits(Tensor out, Tensor state, int level) override;

  private:
    void run(Tensor out, const ParentStates& features, Rows rows);

    Backend& be_;
    const Target& target_;
    ModelConfig config_;
    std::shared_ptr<const EagleWeights> weights_;
    Vector rope_;
    Buffer memory_;
    EagleScratch scratch_;
    KvPool kv_;
};

}  // namespace aerie
