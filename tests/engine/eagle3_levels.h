// An EAGLE-3 head as a LevelModel, as far as the bundled one needs it: the seam that the product's
// own goes through (eagle.md sections 1 and 2).
#pragma once

#include <cstring>
#include <optional>

#include "draft/grown.h"
#include "model/decoder_layer.h"

namespace aerie::test {

class Eagle3Levels final : public LevelModel {
  public:
    // `source.plan.head` has the shape of the head's layer; its tensors are read as f32.
    Eagle3Levels(const DraftSource& source, const GrownReach& reach, int vocab, int taps)
        : be_(source.backend),
          target_(source.target),
          config_(*source.plan.head),
          vocab_(vocab),
          taps_(taps),
          rope_(make_rope_table(be_, reach.positions(source.plan.context),
                                config_.attention.head_dim, config_.rope)),
          kv_(be_, {1, config_.kv_columns(), source.plan.kv, reach.slots(source.plan.context)}) {
        load(source.plan.source->tensors);
        const int rows = reach.rows(source.plan.pass_rows), hidden = config_.hidden;
        TensorPlan plan;
        plan.add(embedding_rows_, DType::F32, rows, hidden);
        plan.add(pair_, DType::F32, rows, 2 * hidden);
        scratch_.add_to(plan, config_, rows);
        memory_ = plan.allocate(be_);
    }

    int token_lead() const override { return 1; }
    int state_columns() const override { return config_.hidden; }
    int feature_columns() const override { return taps_ * config_.hidden; }
    int vocab() const override { return vocab_; }
    Tensor target_ids() const override { return ids_; }
    KvPool& kv() override { return kv_; }

    void read(Tensor state, Tensor features, Rows rows) override {
        be_.run(Matmul{state, features, *fc_});
        run(state, rows);
    }
    void forward(Tensor state, Tensor parents, Rows rows, int) override {
        be_.run(Copy{state, parents});
        run(state, rows);
    }
    void logits(Tensor out, Tensor state, int) override {
        const Tensor norm = scratch_.norm.row_range(0, state.rows);
        be_.run(RmsNorm{norm, state, final_norm_, config_.rms_epsilon});
        be_.run(Matmul{out, norm, *lm_head_});
    }

  private:
    void load(const Checkpoint& tensors) {
        const WeightLoader loader(be_, tensors, DType::F32);
        const std::string layer = "midlayer.";
        const int hidden = config_.hidden;
        fc_ = loader.matrix({{"fc.weight", hidden}}, taps_ * hidden);
        attention_.emplace(loader, config_, layer + "self_attn.", 2 * hidden);
        ffn_.emplace(loader, config_, layer + "mlp.");
        lm_head_ = loader.matrix({{"lm_head.weight", vocab_}}, hidden);
        input_norm_ = loader.vector(layer + "input_layernorm.weight", hidden);
        hidden_norm_ = loader.vector(layer + "hidden_norm.weight", hidden);
        ffn_norm_ = loader.vector(layer + "post_attention_layernorm.weight", hidden);
        final_norm_ = loader.vector("norm.weight", hidden);
        // d2t says how far each of its own ids is below the target's.
        const auto bytes = tensors.read(*tensors.find("d2t"));
        std::vector<int32_t> ids;
        for (int i = 0; i < vocab_; ++i) {
            int64_t offset = 0;
            std::memcpy(&offset, bytes.get() + size_t(i) * sizeof(offset), sizeof(offset));
            ids.push_back(int32_t(i + offset));
        }
        id_memory_ = be_.allocate(dense_bytes(DType::I32, 1, vocab_));
        ids_ = dense(id_memory_.get(), DType::I32, 1, vocab_);
        be_.write(ids_, ids.data());
    }

    // x [M, hidden], in place: one layer whose attention reads embedding and x side by side.
    void run(Tensor x, Rows rows) {
        const int m = rows.count(), hidden = config_.hidden;
        const Tensor embedded = embedding_rows_.row_range(0, m), pair = pair_.row_range(0, m);
        const Tensor norm = scratch_.norm.row_range(0, m);
        be_.run(Embed{embedded, target_.embedding(), rows});
        be_.run(RmsNorm{pair.col_range(0, hidden), embedded, input_norm_, config_.rms_epsilon});
        be_.run(RmsNorm{pair.col_range(hidden, hidden), x, hidden_norm_, config_.rms_epsilon});
        attention_->run(be_, config_, scratch_, x, pair, {rows, kv_.layer(0), rope_});
        be_.run(RmsNorm{norm, x, ffn_norm_, config_.rms_epsilon});
        ffn_->run(be_, scratch_, x, norm, 0);
    }

    Backend& be_;
    const Target& target_;
    ModelConfig config_;
    int vocab_, taps_;
    std::unique_ptr<Weight> fc_, lm_head_;
    std::optional<SelfAttention> attention_;
    std::optional<DenseFfn> ffn_;
    Vector input_norm_, hidden_norm_, ffn_norm_, final_norm_, rope_;
    Buffer memory_, id_memory_;
    Activations scratch_;
    Tensor ids_, embedding_rows_, pair_;
    KvPool kv_;
};

}  // namespace aerie::test
