// One LLaMA decoder layer: the block that the target repeats and that an EAGLE head has once.
#pragma once

#include "backend/tensor_plan.h"
#include "model/config.h"
#include "model/experts.h"
#include "model/weights.h"

namespace aerie {

// Scratch of a pass of up to `rows` rows. The inputs of matmuls have room for every type of
// activations: each weight says which one it wants (activation_in in backend/backend.h).
struct Activations {
    void add_to(TensorPlan& plan, const ModelConfig& config, int rows);

    Tensor norm;     // input of a matmul: [rows, hidden], with or without a norm
    Tensor qkv;      // [rows, qkv_columns]
    Tensor mixed;    // input of a matmul: [rows, attention_columns]
    Tensor padded;   // [rows, attention_columns]; for padded heads only, as `heads` is
    Tensor heads;    // [rows, file_attention_columns]
    Tensor gate_up;  // [rows, 2 * intermediate]
    Tensor gated;    // input of a matmul: [rows, intermediate]
    ExpertActivations experts;
};

// Scratch of a target: that of a layer, and the tensors around the layers.
struct TargetScratch {
    void add_to(TensorPlan& plan, const ModelConfig& config, int rows);

    Activations layer;
    Tensor x;           // [rows, hidden]: the residual stream
    Tensor normed;      // [rows, hidden]: after the final norm
    Tensor head_input;  // input of the LM head's matmul: [rows, hidden], from `normed`
};

struct LayerPass {
    Rows rows;
    KvLayer kv;
    Tensor rope;
    int layer = 0;  // for labels
};

// Projections to q, k and v, attention over the cache, and the projection of its output.
class SelfAttention {
  public:
    // prefix: "model.layers.3.self_attn.". The input has `input_columns` columns.
    SelfAttention(const WeightLoader& loader, const ModelConfig& config, const std::string& prefix,
                  int input_columns);
    const Weight& consumer() const { return *qkv_; }  // weight that multiplies the input
    // `out` has [M, hidden], and `input` the type that consumer() wants.
    void run(Backend& be, const ModelConfig& config, const Activations& scratch, SublayerOutput out,
             Tensor input, const LayerPass& pass) const;

  private:
    // The output of attention without the padding of heads, as input of the output projection.
    Tensor without_padding(Backend& be, const ModelConfig& config, const Activations& scratch,
                           Tensor mixed, int layer) const;

    std::unique_ptr<Weight> qkv_, out_;
    Vector bias_, out_bias_;  // for q, k and v, and for the output; may be absent
    Vector q_norm_, k_norm_;  // may be absent
};

// down(activation(gate) * up).
class DenseFfn final : public Ffn {
  public:
    // prefix: "model.layers.3.mlp.".
    DenseFfn(const WeightLoader& loader, const ModelConfig& config, const std::string& prefix);
    Tensor input_in(const Backend& be, Tensor scratch, int rows) const override {
        return activation_in(be, scratch, *gate_up_, rows);
    }
    Consumers consumers() const override { return {gate_up_.get()}; }
    void run(Backend& be, const Activations& scratch, SublayerOutput out, Tensor input,
             int layer) const override;

  private:
    std::unique_ptr<Weight> gate_up_, down_;
    Activation activation_;
    Vector gate_up_bias_, down_bias_;  // may be absent
};

class DecoderLayer {
  public:
    // prefix: "model.layers.3." . A layer without attention norm (EAGLE-1/2) feeds x to attention
    // as it is.
    DecoderLayer(const WeightLoader& loader, const ModelConfig& config, const std::string& prefix,
                 bool has_attention_norm, bool has_experts = false);

    // Updates x [M, hidden] in place.
    void run(Backend& be, const ModelConfig& config, const Activations& scratch, Tensor x,
             const LayerPass& pass) const;

  private:
    SelfAttention attention_;
    std::unique_ptr<Ffn> ffn_;
    Vector attention_norm_, ffn_norm_;
};

}  // namespace aerie
