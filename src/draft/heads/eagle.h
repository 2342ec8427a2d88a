// The EAGLE-1/2 draft head: one decoder layer that extrapolates the target's features (EAGLE,
// section 3.1; docs/drafting.md sections 1 and 2).
#pragma once

#include "draft/heads/head.h"
#include "model/decoder_layer.h"

namespace aerie {

// The configuration of an EAGLE-1/2 head for this target: one layer like the target's.
HeadConfig eagle_shape(const ModelConfig& target);

// A head's weights on a device, shared by all drafters that use the head.
struct EagleWeights final : DraftWeights {
    // The tensors of the files alone.
    EagleWeights(const WeightLoader& loader, const HeadConfig& config);
    // Throws Error if the head does not fit the target.
    explicit EagleWeights(const DraftSource& source);

    const Weight& lm_head(const Target& target) const {
        return own_lm_head ? *own_lm_head : target.lm_head();
    }

    std::unique_ptr<Weight> embedding;  // absent: the target's serves
    std::unique_ptr<Weight> fc;         // [hidden, 2 hidden]
    Vector fc_bias;                     // may be absent
    std::unique_ptr<DecoderLayer> layer;
    // A copy of the target's LM head in the type that lm_head_type gives, or of only its rows
    // `target_ids`. Absent: the target's own LM head serves.
    std::unique_ptr<Weight> own_lm_head;
    TargetIds target_ids;
};

struct EagleScratch {
    void add_to(TensorPlan& plan, const ModelConfig& config, int rows);

    Activations layer;
    Tensor pair;                    // [rows, 2 hidden]: the embedding, then the feature
    Tensor pair_input, head_input;  // inputs of fc and of the LM head
};

// One pass: fc(embedding, feature), then one decoder layer without input norm. The target's LM head
// makes the logits. A node's state is the feature that it predicts.
class EagleLevels final : public LevelModel {
  public:
    // source.weights must be EagleWeights.
    EagleLevels(const DraftSource& source, const TreeDrafterLimits& reach);

    int token_lead() const override { return 1; }
    int state_columns() const override { return config_.hidden; }
    int feature_columns() const override { return config_.hidden; }
    int vocab() const override { return weights_->lm_head(target_).rows; }
    Tensor target_ids() const override { return weights_->target_ids; }
    KvPool& kv() override { return kv_; }
    const DraftWeights* weights() const override { return weights_.get(); }
    void use(const std::shared_ptr<const DraftWeights>& weights) override {
        weights_ = weights ? std::static_pointer_cast<const EagleWeights>(weights) : first_weights_;
    }

    void read(Tensor state, Tensor features, Rows rows) override { run(state, {features}, rows); }
    void forward(Tensor state, const ParentStates& parents, Rows rows, int) override {
        run(state, parents, rows);
    }
    void logits(Tensor out, Tensor state, int level, int trees) override;

  private:
    void run(Tensor out, const ParentStates& features, Rows rows);

    Backend& be_;
    const Target& target_;
    ModelConfig config_;
    std::shared_ptr<const EagleWeights> first_weights_, weights_;
    Vector rope_;
    Buffer memory_;
    EagleScratch scratch_;
    KvPool kv_;
};

}  // namespace aerie
