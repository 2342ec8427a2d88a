// fc(embedding, feature) -> one layer without input norm; logits by the target's LM head.
#include "draft/eagle_head.h"

#include <set>

#include "backend/ops.h"
#include "core/error.h"

namespace aerie {

namespace {

// Forks of EAGLE add norms and further layers; drafting without them would be silently bad.
void refuse_unknown_tensors(const Checkpoint& checkpoint) {
    static const std::set<std::string> known = {
        "embed_tokens.weight", "fc.weight", "fc.bias", "layers.0.self_attn.q_proj.weight",
        "layers.0.self_attn.k_proj.weight", "layers.0.self_attn.v_proj.weight",
        "layers.0.self_attn.o_proj.weight", "layers.0.mlp.gate_proj.weight",
        "layers.0.mlp.up_proj.weight", "layers.0.mlp.down_proj.weight",
        "layers.0.post_attention_layernorm.weight",
        // Copies that some exports carry along; not used.
        "lm_head.weight", "layers.0.self_attn.rotary_emb.inv_freq"};
    for (const auto& [name, tensor] : checkpoint.tensors())
        if (!known.count(name))
            throw Error(checkpoint.folder().string() + ": '" + name +
                        "' is no part of an EAGLE-1/2 head");
}

}  // namespace

void check_head_fits(const ModelConfig& head, const ModelConfig& target,
                     const std::string& folder) {
    const auto check = [&](const char* what, int have, int want) {
        if (have != want)
            throw Error(folder + ": this head has " + what + " " + std::to_string(have) +
                        ", the target has " + std::to_string(want));
    };
    check("hidden size", head.hidden, target.hidden);
    check("vocabulary size", head.vocab, target.vocab);
}

DType lm_head_type(const Checkpoint& head, std::optional<DType> weights) {
    const NamedTensor* fc = head.find("fc.weight");
    return weights.value_or(fc ? fc->dtype : DType::F32);
}

void HeadScratch::add_to(TensorPlan& plan, const ModelConfig& config, int rows) {
    layer.add_to(plan, config, rows);
    plan.add(pair, DType::F32, rows, 2 * config.hidden);
    plan.add(pair_input, DType::F32, rows, 2 * config.hidden);
    plan.add(head_input, DType::F32, rows, config.hidden);
}

size_t head_scratch_bytes(const ModelConfig& config, const HeadLimits& limits) {
    HeadScratch scratch;
    TensorPlan plan;
    scratch.add_to(plan, config, limits.rows);
    return plan.size_bytes() + limits.kv.size_bytes() +
           dense_bytes(DType::F32, limits.positions, config.attention.head_dim);
}

EagleHead::EagleHead(Backend& be, const ModelConfig& config, const Checkpoint& checkpoint,
                     std::optional<DType> weights, const Target& target, const HeadLimits& limits)
    : be_(be), config_(config), target_(target), kv_(be, limits.kv) {
    check_head_fits(config, target.config(), checkpoint.folder().string());
    refuse_unknown_tensors(checkpoint);
    const WeightLoader loader(be, checkpoint, weights);
    if (checkpoint.find("embed_tokens.weight"))
        embedding_ = loader.matrix({{"embed_tokens.weight", config.vocab}}, config.hidden,
                                   WeightUse::lookup);
    fc_ = loader.matrix({{"fc.weight", config.hidden}}, 2 * config.hidden);
    if (checkpoint.find("fc.bias")) fc_bias_ = loader.vector("fc.bias", config.hidden);
    layer_ = std::make_unique<DecoderLayer>(loader, config, "layers.0.", false);
    TensorPlan plan;
    scratch_.add_to(plan, config, limits.rows);
    memory_ = plan.allocate(be);
    const DType type = lm_head_type(checkpoint, weights);
    if (!target.lm_head().is_stored_as(type)) lm_head_ = target.copy_lm_head(type);
    rope_ = make_rope_table(be, limits.positions, config.attention.head_dim, config.rope_theta);
}

void EagleHead::forward(Tensor out, Tensor features, Rows rows) {
    const Tensor pair = scratch_.pair.row_range(0, rows.count());
    embed(be_, pair.col_range(0, config_.hidden), embedding_ ? *embedding_ : target_.embedding(),
          rows);
    copy(be_, pair.col_range(config_.hidden, config_.hidden), features);
    matmul(be_, out, activation(be_, pair, *fc_, scratch_.pair_input), *fc_, Accumulate::no,
           fc_bias_);
    layer_->run(be_, config_, scratch_.layer, out, {rows, kv_.layer(0), rope_});
}

void EagleHead::logits(Tensor out, Tensor hidden) {
    const Weight& head = lm_head_ ? *lm_head_ : target_.lm_head();
    matmul(be_, out, activation(be_, hidden, head, scratch_.head_input), head);
}

}  // namespace aerie
