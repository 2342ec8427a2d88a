// An EAGLE-3 head as a LevelModel, as far as the bundled one needs it: the seam that the product's
// own goes through (eagle.md sections 1 and 2).
#pragma once

#include <cstring>

#include "draft/grown.h"
#include "model/weights.h"

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
                                config_.attention.head_dim, config_.rope_theta)),
          kv_(be_, {1, config_.kv_columns(), source.plan.kv, reach.slots(source.plan.context)}) {
        load(source.plan.source->tensors);
        const int rows = reach.rows(source.plan.pass_rows), hidden = config_.hidden;
        TensorPlan plan;
        plan.add(embedding_rows_, DType::F32, rows, hidden);
        plan.add(pair_, DType::F32, rows, 2 * hidden);
        plan.add(norm_, DType::F32, rows, hidden);
        plan.add(qkv_, DType::F32, rows, config_.qkv_columns());
        plan.add(mixed_, DType::F32, rows, config_.attention_columns());
        plan.add(gate_up_, DType::F32, rows, 2 * config_.intermediate);
        plan.add(gated_, DType::F32, rows, config_.intermediate);
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
        const Tensor norm = norm_.row_range(0, state.rows);
        be_.run(RmsNorm{norm, state, final_norm_, config_.rms_epsilon});
        be_.run(Matmul{out, norm, *lm_head_});
    }

  private:
    void load(const Checkpoint& tensors) {
        const WeightLoader loader(be_, tensors, DType::F32);
        const std::string layer = "midlayer.";
        const int hidden = config_.hidden;
        fc_ = loader.matrix({{"fc.weight", hidden}}, taps_ * hidden);
        qkv_weight_ =
            loader.matrix({{layer + "self_attn.q_proj.weight", config_.attention_columns()},
                           {layer + "self_attn.k_proj.weight", config_.kv_columns()},
                           {layer + "self_attn.v_proj.weight", config_.kv_columns()}},
                          2 * hidden);
        out_ = loader.matrix({{layer + "self_attn.o_proj.weight", hidden}},
                             config_.attention_columns());
        gate_up_weight_ = loader.matrix({{layer + "mlp.gate_proj.weight", config_.intermediate},
                                         {layer + "mlp.up_proj.weight", config_.intermediate}},
                                        hidden);
        down_ = loader.matrix({{layer + "mlp.down_proj.weight", hidden}}, config_.intermediate);
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
        const Tensor qkv = qkv_.row_range(0, m), mixed = mixed_.row_range(0, m);
        const Tensor norm = norm_.row_range(0, m), gated = gated_.row_range(0, m);
        be_.run(Embed{embedded, target_.embedding(), rows});
        be_.run(RmsNorm{pair.col_range(0, hidden), embedded, input_norm_, config_.rms_epsilon});
        be_.run(RmsNorm{pair.col_range(hidden, hidden), x, hidden_norm_, config_.rms_epsilon});
        be_.run(Matmul{qkv, pair, *qkv_weight_});
        be_.run(RopeAppend{qkv, rope_, rows, config_.attention, kv_.layer(0)});
        be_.run(Attention{mixed, qkv, rows, config_.attention, kv_.layer(0)});
        be_.run(Matmul{x, mixed, *out_, Accumulate::yes});
        be_.run(RmsNorm{norm, x, ffn_norm_, config_.rms_epsilon});
        be_.run(MatmulSwiglu{gated, gate_up_.row_range(0, m), norm, *gate_up_weight_});
        be_.run(Matmul{x, gated, *down_, Accumulate::yes});
    }

    Backend& be_;
    const Target& target_;
    ModelConfig config_;
    int vocab_, taps_;
    std::unique_ptr<Weight> fc_, qkv_weight_, out_, gate_up_weight_, down_, lm_head_;
    Vector input_norm_, hidden_norm_, ffn_norm_, final_norm_, rope_;
    Buffer memory_, id_memory_;
    Tensor ids_, embedding_rows_, pair_, norm_, qkv_, mixed_, gate_up_, gated_;
    KvPool kv_;
};

}  // namespace aerie::test
