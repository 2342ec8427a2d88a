// LLaMA: embedding, decoder layers, final norm, LM head.
#include <algorithm>

#include "backend/ops.h"
#include "core/error.h"
#include "model/decoder_layer.h"
#include "model/target.h"

namespace aerie {

namespace {

class Llama final : public Target {
  public:
    Llama(Backend& be, const ModelConfig& config, const Checkpoint& checkpoint,
          std::optional<DType> weights, const TargetLimits& limits)
        : be_(be) {
        config_ = config;
        for (const auto& [name, tensor] : checkpoint.tensors())
            if (name.ends_with(".bias"))
                throw Error(checkpoint.folder().string() + ": '" + name +
                            "' is there; biases are not implemented");
        TensorPlan plan;
        scratch_.add_to(plan, config, limits.rows);
        plan.add(x_, DType::F32, limits.rows, config.hidden);
        memory_ = plan.allocate(be);
        const WeightLoader loader(be, checkpoint, weights);
        embedding_ = loader.matrix({{"model.embed_tokens.weight", config.vocab}}, config.hidden);
        for (int i = 0; i < config.layers; ++i)
            layers_.emplace_back(loader, config, "model.layers." + std::to_string(i) + ".", true);
        final_norm_ = loader.vector("model.norm.weight", config.hidden);
        if (!config.tied_embeddings)
            lm_head_ = loader.matrix({{"lm_head.weight", config.vocab}}, config.hidden);
        rope_ = make_rope_table(be, limits.positions, config.attention.head_dim, config.rope_theta);
    }

    void forward(const TargetPass& pass) override {
        const int m = pass.rows.count();
        const Tensor x = x_.row_range(0, m);
        embed(be_, x, *embedding_, pass.rows);
        for (int i = 0; i < config_.layers; ++i) {
            copy_tap(pass, i, x);
            layers_[i].run(be_, config_, scratch_, x, {pass.rows, pass.kv->layer(i), rope_});
        }
        const Tensor norm = scratch_.norm.row_range(0, m);
        rms_norm(be_, norm, x, final_norm_, config_.rms_epsilon);
        copy_tap(pass, config_.layers, norm);
        if (const int n = pass.logits.rows; n > 0)
            matmul(be_, pass.logits, norm.row_range(m - n, n), lm_head());
    }

  private:
    void copy_tap(const TargetPass& pass, int layer, Tensor state) {
        for (size_t t = 0; t < pass.taps.size(); ++t)
            if (pass.taps[t] == layer)
                copy(be_, pass.features.col_range(int(t) * config_.hidden, config_.hidden), state);
    }

    Backend& be_;
    Buffer memory_;
    Activations scratch_;
    Tensor x_;
    std::vector<DecoderLayer> layers_;
    Vector final_norm_, rope_;
};

}  // namespace

std::unique_ptr<Target> make_llama(Backend& be, const ModelConfig& config,
                                   const Checkpoint& checkpoint, std::optional<DType> weights,
                                   const TargetLimits& limits) {
    return std::make_unique<Llama>(be, config, checkpoint, weights, limits);
}

}  // namespace aerie
