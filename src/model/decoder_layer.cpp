// A transformer layer, in the order of the paper (LLaMA, section 2.2).
#include "model/decoder_layer.h"

namespace aerie {

void Activations::add_to(TensorPlan& plan, const ModelConfig& config, int rows) {
    plan.add(norm, DType::F32, rows, config.hidden);
    plan.add(qkv, DType::F32, rows, config.qkv_columns());
    plan.add(mixed, DType::F32, rows, config.attention_columns());
    if (config.file_head_dim > 0) {
        plan.add(padded, DType::F32, rows, config.attention_columns());
        plan.add(heads, DType::F32, rows, config.file_attention_columns());
    }
    plan.add(gate_up, DType::F32, rows, 2 * config.intermediate);
    plan.add(gated, DType::F32, rows, config.intermediate);
    experts.add_to(plan, config, rows);
}

void TargetScratch::add_to(TensorPlan& plan, const ModelConfig& config, int rows) {
    layer.add_to(plan, config, rows);
    plan.add(x, DType::F32, rows, config.hidden);
    plan.add(normed, DType::F32, rows, config.hidden);
    plan.add(head_input, DType::F32, rows, config.hidden);
}

SelfAttention::SelfAttention(const WeightLoader& loader, const ModelConfig& config,
                             const std::string& prefix, int input_columns) {
    const int q_rows = config.attention_columns(), kv_rows = config.kv_columns();
    qkv_ = loader.matrix({{prefix + "q_proj.weight", q_rows},
                          {prefix + "k_proj.weight", kv_rows},
                          {prefix + "v_proj.weight", kv_rows}},
                         input_columns);
    out_ =
        loader.matrix({{prefix + "o_proj.weight", config.hidden}}, config.file_attention_columns());
    if (config.qk_norm) {
        q_norm_ = loader.norm(prefix + "q_norm.weight", config.attention.head_dim);
        k_norm_ = loader.norm(prefix + "k_norm.weight", config.attention.head_dim);
    }
    if (config.qkv_bias)
        bias_ = loader.vector({{prefix + "q_proj.bias", q_rows},
                               {prefix + "k_proj.bias", kv_rows},
                               {prefix + "v_proj.bias", kv_rows}});
    if (config.attention_output_bias)
        out_bias_ = loader.vector(prefix + "o_proj.bias", config.hidden);
}

namespace {

// A mean over padded heads is the mean over the true elements times the ratio of their sizes, so
// epsilon, which is added to it, takes the same ratio.
float head_epsilon(const ModelConfig& config) {
    if (config.file_head_dim == 0) return config.rms_epsilon;
    return config.rms_epsilon * float(config.file_head_dim) / float(config.attention.head_dim);
}

// A view of the tensor with one head per row.
Tensor heads_of(Tensor tensor, int heads) {
    return dense_prefix(tensor, tensor.rows * heads, tensor.cols / heads);
}

}  // namespace

Tensor SelfAttention::without_padding(Backend& be, const ModelConfig& config,
                                      const Activations& scratch, Tensor mixed, int layer) const {
    const int heads = config.attention.heads;
    const Tensor whole = scratch.heads.row_range(0, mixed.rows);
    be.run(Copy{heads_of(whole, heads), heads_of(mixed, heads).col_range(0, config.file_head_dim)},
           {"heads", layer});
    return activation(be, whole, *out_, scratch.mixed, {"attention input", layer});
}

void SelfAttention::run(Backend& be, const ModelConfig& config, const Activations& scratch,
                        SublayerOutput out, Tensor input, const LayerPass& pass) const {
    const int rows = input.rows;
    const Tensor qkv = scratch.qkv.row_range(0, rows);
    const auto run = [&](const char* label, const auto& op) { be.run(op, {label, pass.layer}); };
    if (q_norm_.tensor) {
        run("qkv", Matmul{qkv, input, *qkv_, Accumulate::no, bias_});
        run("head norm", HeadNorm{qkv, q_norm_, k_norm_, config.attention, head_epsilon(config)});
        run("rotation", RopeAppend{qkv, pass.rope, pass.rows, config.attention, pass.kv});
    } else {
        run("rotation",
            MatmulRope{qkv, input, *qkv_, bias_, pass.rope, pass.rows, config.attention, pass.kv});
    }
    const bool is_padded = config.file_head_dim > 0;
    Tensor mixed = is_padded ? scratch.padded.row_range(0, rows)
                             : activation_in(be, scratch.mixed, *out_, rows);
    run("attention",
        Attention{mixed, qkv, pass.rows, config.attention, pass.kv, config.attention.usual_scale(),
                  config.window(pass.layer), is_padded ? Consumers{} : Consumers{out_.get()}});
    if (is_padded) mixed = without_padding(be, config, scratch, mixed, pass.layer);
    run("attention output", Matmul{out.tensor, mixed, *out_, out.accumulate, out_bias_});
}

DenseFfn::DenseFfn(const WeightLoader& loader, const ModelConfig& config, const std::string& prefix)
    : activation_(config.activation) {
    gate_up_ = loader.matrix({{prefix + "gate_proj.weight", config.intermediate},
                              {prefix + "up_proj.weight", config.intermediate}},
                             config.hidden, WeightUse::gated);
    down_ = loader.matrix({{prefix + "down_proj.weight", config.hidden}}, config.intermediate);
    if (!config.mlp_bias) return;
    gate_up_bias_ = loader.vector({{prefix + "gate_proj.bias", config.intermediate},
                                   {prefix + "up_proj.bias", config.intermediate}});
    down_bias_ = loader.vector(prefix + "down_proj.bias", config.hidden);
}

void DenseFfn::run(Backend& be, const Activations& scratch, SublayerOutput out, Tensor input,
                   int layer) const {
    const Tensor gate_up = scratch.gate_up.row_range(0, input.rows);
    const Tensor gated = activation_in(be, scratch.gated, *down_, input.rows);
    be.run(MatmulGated{gated, gate_up, input, *gate_up_, activation_, gate_up_bias_, {down_.get()}},
           {"gated", layer});
    be.run(Matmul{out.tensor, gated, *down_, out.accumulate, down_bias_}, {"down", layer});
}

DecoderLayer::DecoderLayer(const WeightLoader& loader, const ModelConfig& config,
                           const std::string& prefix, bool has_attention_norm, bool has_experts)
    : attention_(loader, config, prefix + "self_attn.", config.hidden) {
    if (has_experts)
        ffn_ = std::make_unique<Experts>(loader, config, prefix);
    else
        ffn_ = std::make_unique<DenseFfn>(loader, config, prefix + "mlp.");
    ffn_norm_ = loader.norm(prefix + "post_attention_layernorm.weight", config.hidden);
    if (has_attention_norm)
        attention_norm_ = loader.norm(prefix + "input_layernorm.weight", config.hidden);
}

void DecoderLayer::run(Backend& be, const ModelConfig& config, const Activations& scratch, Tensor x,
                       const LayerPass& pass) const {
    const float epsilon = config.rms_epsilon;
    const auto run = [&](const char* label, const auto& op) { be.run(op, {label, pass.layer}); };

    Tensor input = activation_in(be, scratch.norm, attention_.consumer(), x.rows);
    if (attention_norm_.tensor)
        run("attention norm",
            RmsNorm{input, x, attention_norm_, epsilon, {&attention_.consumer()}});
    else
        run("attention input", Copy{input, x});
    attention_.run(be, config, scratch, {x, Accumulate::yes}, input, pass);

    input = ffn_->input_in(be, scratch.norm, x.rows);
    run("ffn norm", RmsNorm{input, x, ffn_norm_, epsilon, ffn_->consumers()});
    ffn_->run(be, scratch, {x, Accumulate::yes}, input, pass.layer);
}

}  // namespace aerie
