// A transformer layer, reading like the paper (LLaMA, section 2.2).
#include "model/decoder_layer.h"

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

void DecoderLayer::run(Backend& be, const ModelConfig& config, const Activations& scratch, Tensor x,
                       const LayerPass& pass) const {
    const int m = x.rows;
    const Tensor qkv = scratch.qkv.row_range(0, m), gate_up = scratch.gate_up.row_range(0, m);
    const Tensor mixed = activation_in(be, scratch.mixed, *out_, m);
    const Tensor gated = activation_in(be, scratch.gated, *down_, m);

    const float epsilon = config.rms_epsilon;
    const auto run = [&](const char* label, const auto& op) { be.run(op, {label, pass.layer}); };

    Tensor norm = activation_in(be, scratch.norm, *qkv_, m);
    if (attention_norm_.tensor)
        run("attention norm", RmsNorm{norm, x, attention_norm_, epsilon, {qkv_.get()}});
    else
        run("attention input", Copy{norm, x});
    run("qkv", Matmul{qkv, norm, *qkv_});
    run("rotation", RopeAppend{qkv, pass.rope, pass.rows, config.attention, pass.kv});
    run("attention", Attention{mixed, qkv, pass.rows, config.attention, pass.kv});
    run("attention output", Matmul{x, mixed, *out_, Accumulate::yes});

    norm = activation_in(be, scratch.norm, *gate_up_, m);
    run("ffn norm", RmsNorm{norm, x, ffn_norm_, epsilon, {gate_up_.get()}});
    run("swiglu", MatmulSwiglu{gated, gate_up, norm, *gate_up_});
    run("down", Matmul{x, gated, *down_, Accumulate::yes});
}

}  // namespace aerie
