// One LLaMA decoder layer: the block that the target repeats and that an EAGLE head has once.
#pragma once

#include "backend/tensor_plan.h"
#include "model/config.h"
#include "model/experts.h"
#include "model/weights.h"

namespace aerie {

// Scratch of a pass of up to `rows` rows. What a matmul reads has room for any type of activations:
// each weight says which one it wants (activation_in in backend/ops.h).
struct Activations {
    void add_to(TensorPlan& plan, const ModelConfig& config, int rows);

    Tensor norm;     // read by a matmul: [rows, hidden], also of what is not normed but multiplied
    Tensor qkv;      // [rows, qkv_columns]
    Tensor mixed;    // read by a matmul: [rows, attention_columns]
    Tensor padded;   // [rows, attention_columns]; only of padded heads, as the next one
    Tensor heads;    // [rows, file_attention_columns]
    Tensor gate_up;  // [rows, 2 * intermediate]
    Tensor gated;    // read by a matmul: [rows, intermediate]
    ExpertActivations experts;
};

// What a target needs around its layers.
struct TargetScratch {
    void add_to(TensorPlan& plan, const ModelConfig& config, int rows);

    Activations layer;
    Tensor x;           // [rows, hidden]: the residual stream
    Tensor normed;      // [rows, hidden]: after the final norm
    Tensor head_input;  // read by a matmul, the LM head: [rows, hidden], the same
};

struct LayerPass {
    Rows rows;
    KvLayer kv;
    Tensor rope;
    int layer = 0;  // for labels
};

// q, k, v, attention over the cache and its output.
class SelfAttention {
  public:
    // prefix: "model.layers.3.self_attn."; of an input of so many columns.
    SelfAttention(const WeightLoader& loader, const ModelConfig& config, const std::string& prefix,
                  int input_columns);
    const Weight& reader() const { return *qkv_; }  // of the input
    // Adds to x [M, hidden]; `input` as its reader wants it.
    void run(Backend& be, const ModelConfig& config, const Activations& scratch, Tensor x,
             Tensor input, const LayerPass& pass) const;

  private:
    // What attention gave of padded heads, as the output's matmul reads it.
    Tensor without_padding(Backend& be, const ModelConfig& config, const Activations& scratch,
                           Tensor mixed, int layer) const;

    std::unique_ptr<Weight> qkv_, out_;
    Vector bias_, out_bias_;  // of q, k and v, of the output; may be absent
    Vector q_norm_, k_norm_;  // may be absent
};

// down(silu(gate) * up).
class DenseFfn final : public Ffn {
  public:
    // prefix: "model.layers.3.mlp.".
    DenseFfn(const WeightLoader& loader, const ModelConfig& config, const std::string& prefix);
    Tensor input_in(const Backend& be, Tensor room, int rows) const override {
        return activation_in(be, room, *gate_up_, rows);
    }
    Readers readers() const override { return {gate_up_.get()}; }
    void run(Backend& be, const Activations& scratch, Tensor x, Tensor input,
             int layer) const override;

  private:
    std::unique_ptr<Weight> gate_up_, down_;
    Vector gate_up_bias_, down_bias_;  // may be absent
};

class DecoderLayer {
  public:
    // prefix: "model.layers.3." . A layer without attention norm (EAGLE-1/2) feeds x to attention
    // raw.
    DecoderLayer(const WeightLoader& loader, const ModelConfig& config, const std::string& prefix,
                 bool has_attention_norm, bool has_experts = false);

    // x [M, hidden], in place.
    void run(Backend& be, const ModelConfig& config, const Activations& scratch, Tensor x,
             const LayerPass& pass) const;

  private:
    SelfAttention attention_;
    std::unique_ptr<Ffn> ffn_;
    Vector attention_norm_, ffn_norm_;
};

}  // namespace aerie
