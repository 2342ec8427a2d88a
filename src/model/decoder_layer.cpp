// A transformer layer, reading like the paper (LLaMA, section 2.2).
#include "model/decoder_layer.h"

#include "backend/ops.h"

namespace aerie {

void Activations::add_to(TensorPlan& plan, const ModelConfig& config, int rows) {
    plan.add(norm, DType::F32, rows, config.hidden);
    plan.add(qkv, DType::F32, rows, config.qkv_columns());
    plan.add(mixed, DType::F32, rows, config.attention_columns());
    plan.add(gate_up, DType::F32, rows, 2 * config.intermediate);
    plan.add(gated, DType::F32, rows, config.intermediate);
}

void TargetScratch::add_to(TensorPlan& plan, const ModelConfig& config, int rows) {
    layer.add_to(plan, config, rows);
    plan.add(x, DType::F32, rows, config.hidden);
    plan.add(normed, DType::F32, rows, config.hidden);
    plan.add(head_input, DType::F32, rows, config.hidden);
}

DecoderLayer::DecoderLayer(const WeightLoader& loader, const ModelConfig& config,
                           const std::string& prefix, bool has_attention_norm) {
    const int q_rows = config.attention_columns(), kv_rows = config.kv_columns();
    qkv_ = loader.matrix({{prefix + "self_attn.q_proj.weight", q_rows},
                          {prefix + "self_attn.k_proj.weight", kv_rows},
                          {prefix + "self_attn.v_proj.weight", kv_rows}},
                         config.hidden);
    out_ = loader.matrix({{prefix + "self_attn.o_proj.weight", config.hidden}}, q_rows);
    gate_up_ = loader.matrix({{prefix + "mlp.gate_proj.weight", config.intermediate},
                              {prefix + "mlp.up_proj.weight", config.intermediate}},
                             config.hidden, WeightUse::gated);
    down_ = loader.matrix({{prefix + "mlp.down_proj.weight", config.hidden}}, config.intermediate);
    ffn_norm_ = loader.vector(prefix + "post_attention_layernorm.weight", config.hidden);
    if (has_attention_norm)
        attention_norm_ = loader.vector(prefix + "input_layernorm.weight", config.hidden);
}

std::vector<std::string> DecoderLayer::op_names() {
    return {"attention norm", "qkv",     "rotation", "attention", "attention output",
            "ffn norm",       "gate_up", "swiglu",   "down"};
}

void DecoderLayer::run(Backend& be, const ModelConfig& config, const Activations& scratch, Tensor x,
                       const LayerPass& pass) const {
    const int m = x.rows;
    const Tensor qkv = scratch.qkv.row_range(0, m), gate_up = scratch.gate_up.row_range(0, m);
    const Tensor mixed = activation_in(be, scratch.mixed, *out_, m);
    const Tensor gated = activation_in(be, scratch.gated, *down_, m);

    Tensor norm = activation_in(be, scratch.norm, *qkv_, m);
    if (attention_norm_.tensor)
        rms_norm(be, norm, x, attention_norm_, config.rms_epsilon, *qkv_);
    else
        copy(be, norm, x);
    matmul(be, qkv, norm, *qkv_);
    rope_append(be, qkv, pass.rope, pass.rows, config.attention, pass.kv);
    attention(be, mixed, qkv, pass.rows, config.attention, pass.kv);
    matmul(be, x, mixed, *out_, Accumulate::yes);

    norm = activation_in(be, scratch.norm, *gate_up_, m);
    rms_norm(be, norm, x, ffn_norm_, config.rms_epsilon, *gate_up_);
    matmul_swiglu(be, gated, gate_up, norm, *gate_up_);
    matmul(be, x, gated, *down_, Accumulate::yes);
}

}  // namespace aerie
