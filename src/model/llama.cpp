// LLaMA: embedding, decoder layers, final norm, LM head.
#include <algorithm>
#include <cassert>

#include "core/error.h"
#include "model/decoder_layer.h"
#include "model/target.h"
#include "model/tensors.h"

namespace aerie {

namespace {

std::unique_ptr<Weight> load_lm_head(const WeightLoader& loader, const ModelConfig& config) {
    return loader.matrix({{config.lm_head_name(), config.vocab}}, config.hidden);
}

struct Weights {
    Weights(const WeightLoader& loader, const ModelConfig& config) {
        embedding = loader.matrix({{"model.embed_tokens.weight", config.vocab}}, config.hidden,
                                  config.tied_embeddings ? WeightUse::multiply : WeightUse::lookup);
        for (int i = 0; i < config.layers; ++i)
            layers.emplace_back(loader, config, "model.layers." + std::to_string(i) + ".", true,
                                config.experts.in_layer(i));
        final_norm = loader.norm("model.norm.weight", config.hidden);
        if (!config.tied_embeddings) lm_head = load_lm_head(loader, config);
    }

    std::unique_ptr<Weight> embedding, lm_head;  // no lm_head: tied
    std::vector<DecoderLayer> layers;
    Vector final_norm;
};

class Llama final : public Target {
  public:
    Llama(Backend& be, const ModelConfig& config, const Checkpoint& checkpoint,
          std::optional<DType> weights, const TargetLimits& limits)
        : be_(be), checkpoint_(checkpoint) {
        config_ = config;
        refuse_other_weights(config, checkpoint);
        Weights loaded(WeightLoader(be, checkpoint, weights), config);
        embedding_ = std::move(loaded.embedding);
        lm_head_ = std::move(loaded.lm_head);
        layers_ = std::move(loaded.layers);
        final_norm_ = std::move(loaded.final_norm);
        TensorPlan plan;
        scratch_.add_to(plan, config, limits.rows);
        memory_ = plan.allocate(be);
        rope_ = make_rope_table(be, limits.positions, config);
    }

    void forward(const TargetPass& pass) override {
        const int m = pass.rows.count();
        const Tensor x = scratch_.x.row_range(0, m), normed = scratch_.normed.row_range(0, m);
        be_.run(Embed{x, *embedding_, pass.rows}, "embedding");
        for (int i = 0; i < config_.layers; ++i) {
            copy_tap(pass, i, x);
            layers_[i].run(be_, config_, scratch_.layer, x,
                           {pass.rows, pass.kv->layer(i), rope_, i});
        }
        be_.run(RmsNorm{normed, x, final_norm_, config_.rms_epsilon}, kFinalNorm);
        copy_tap(pass, config_.layers, normed);
        if (pass.logits.rows > 0) read_out(pass, normed);
    }

    std::unique_ptr<Weight> copy_lm_head(DType as, std::span<const int32_t> rows) const override {
        const WeightLoader loader(be_, checkpoint_, as);
        if (rows.empty()) return load_lm_head(loader, config_);
        return loader.chosen_rows({config_.lm_head_name(), config_.vocab}, rows, config_.hidden);
    }

  private:
    void copy_tap(const TargetPass& pass, int layer, Tensor state) {
        const int columns = config_.hidden;
        for (int t = 0; t < int(pass.taps.size()); ++t)
            if (pass.taps[size_t(t)] == layer)
                be_.run(Copy{pass.features.col_range(t * columns, columns), state}, {"tap", layer});
    }
    void read_out(const TargetPass& pass, Tensor normed) {
        const int n = pass.logits.rows, m = normed.rows;
        assert(n <= m);
        const Tensor input = activation(be_, normed.row_range(m - n, n), lm_head(),
                                        scratch_.head_input, "LM head input");
        be_.run(Matmul{pass.logits, input, lm_head()}, "logits");
    }

    Backend& be_;
    const Checkpoint& checkpoint_;
    Buffer memory_;
    TargetScratch scratch_;
    std::vector<DecoderLayer> layers_;
    Vector final_norm_, rope_;
};

}  // namespace

void load_llama(const WeightLoader& loader, const ModelConfig& config) {
    Weights(loader, config);
}

std::unique_ptr<Target> make_llama(Backend& be, const ModelConfig& config,
                                   const Checkpoint& checkpoint, std::optional<DType> weights,
                                   const TargetLimits& limits) {
    return std::make_unique<Llama>(be, config, checkpoint, weights, limits);
}

}  // namespace aerie
