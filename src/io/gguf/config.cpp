// Tables of the keys that have a counterpart, and the members that are not plain numbers.
#include "io/gguf/config.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/error.h"
#include "core/utf8.h"
#include "io/foreign_drafters.h"
#include "io/gguf/control_tokens.h"
#include "io/gguf/keys.h"
#include "io/gguf/scaling.h"

namespace aerie {

namespace {

// The sliding window in positions; 0: none, as where the key is missing.
int64_t window_of(const GgufKeys& keys) {
    constexpr const char* kWindow = "attention.sliding_window";
    const int64_t window = keys.integer(kWindow, 0);
    if (window < 0) keys.fail(kWindow, "is " + std::to_string(window) + ", which is no window");
    return window;
}

// "llama" stands for three of Hugging Face's model types; experts and the window tell them apart.
std::string model_type(const GgufKeys& keys, GgufArchitecture architecture) {
    if (architecture == GgufArchitecture::Llama && keys.integer("expert_count", 0) > 0)
        return "mixtral";
    if (architecture == GgufArchitecture::Llama && window_of(keys) > 0) return "mistral";
    return std::string(model_type(architecture));
}

void add_experts(Json& config, const GgufKeys& keys, GgufArchitecture architecture) {
    const int64_t experts = keys.integer("expert_count", 0);
    if (architecture != GgufArchitecture::Qwen3Moe) {
        config.set("intermediate_size", keys.integer("feed_forward_length"));
        if (experts > 0) config.set("num_local_experts", experts);
        return;
    }
    const int64_t own = keys.integer("expert_feed_forward_length");
    config.set("intermediate_size", keys.integer("feed_forward_length", own));
    config.set("moe_intermediate_size", own);
    config.set("num_experts", experts);
    // Without the key, the default is that of other programs that read such files.
    config.set("norm_topk_prob", keys.boolean("expert_weights_norm", true));
    Json::Array dense;
    for (const GgufTensor& tensor : keys.gguf().tensors()) {
        constexpr std::string_view kBefore = "blk.", kAfter = ".ffn_gate.weight";
        std::string_view name = tensor.name;
        if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) continue;
        name = name.substr(kBefore.size(), name.size() - kBefore.size() - kAfter.size());
        int layer = -1;
        std::from_chars(name.data(), name.data() + name.size(), layer);
        if (layer >= 0) dense.emplace_back(layer);
    }
    if (!dense.empty()) config.set("mlp_only_layers", std::move(dense));
}

// The window of each layer: all layers have it unless the file says otherwise.
void add_windows(Json& config, const GgufKeys& keys) {
    constexpr const char* kPattern = "attention.sliding_window_pattern";
    const int64_t window = window_of(keys);
    // null is explicit: without the member, the architecture's default window would apply.
    config.set("sliding_window", window > 0 ? Json(window) : Json());
    if (window == 0) return;
    config.set("use_sliding_window", true);
    config.set("max_window_layers", 0);
    const GgufValue* pattern = keys.find(kPattern);
    if (!pattern) return;
    if (!pattern->is_array() || pattern->type() != GgufType::Bool)
        keys.fail(kPattern, "is no array of booleans; that is not implemented");
    constexpr size_t kMost = 1 << 16;
    if (pattern->size() > kMost || int64_t(pattern->size()) != keys.integer("block_count"))
        keys.fail(kPattern, "has not one entry for each layer");
    Json::Array types;
    for (size_t i = 0; i < pattern->size(); ++i)
        types.emplace_back(pattern->boolean(i) ? "sliding_attention" : "full_attention");
    config.set("layer_types", std::move(types));
}

int64_t rows_of(const Gguf& gguf, const char* tensor) {
    const GgufTensor* found = gguf.find(tensor);
    if (!found) throw Error(gguf.metadata().file() + ": no tensor " + in_quotes(tensor));
    if (found->shape.size() > 2)
        throw Error(gguf.describe(*found) + " has shape " + found->shape_text() +
                    ", expected a matrix");
    return found->shape.front();
}

// Members that only EAGLE-3 heads have. Their embedding and LM head may be the target's.
void add_head(Json& config, const GgufKeys& keys) {
    constexpr size_t kMaxTaps = 64;  // no reader takes more
    config.set("architectures", Json::Array{"LlamaForCausalLMEagle3"});
    config.set("vocab_size", keys.integer("vocab_size"));
    for (const char* rows : {"output.weight", "d2t"})
        if (keys.has(rows) && !config.find("draft_vocab_size"))
            config.set("draft_vocab_size", rows_of(keys.gguf(), rows));
    if (keys.find("target_hidden_size"))
        config.set("target_hidden_size", keys.integer("target_hidden_size"));
    for (const char* norm : {"norm_before_residual", "norm_before_fc"})
        config.set(norm, keys.boolean(norm, false));
    if (!keys.find("target_layers")) return;
    const GgufValue& layers = keys.integers("target_layers");
    Json::Array taps;
    for (size_t i = 0; i < std::min(layers.size(), kMaxTaps); ++i)
        taps.emplace_back(layers.integer(i).value_or(-1));
    config.set("eagle_aux_hidden_state_layer_ids", std::move(taps));
}

}  // namespace

GgufArchitecture architecture_of(const Gguf& gguf) {
    const GgufMetadata& metadata = gguf.metadata();
    const std::string_view name = metadata.string("general.architecture");
    const std::optional<GgufArchitecture> found = find_architecture(name);
    if (!found)
        throw Error(metadata.file() + ": the architecture is " + in_quotes(std::string(name)) +
                        (has_mtp_layers(gguf) ? ", with MTP layers" : "") + "; implemented are " +
                        target_names() + ", and eagle3 for heads",
                    Cause::unsupported);
    return *found;
}

int gguf_head_dim(const Gguf& gguf) {
    constexpr int64_t kMost = 1 << 16;
    const GgufKeys keys(gguf);
    const bool is_given = keys.find("attention.key_length");
    const int64_t heads = is_given ? 1 : keys.integer("attention.head_count");
    if (heads < 1) keys.fail("attention.head_count", "is " + std::to_string(heads));
    const int64_t size =
        keys.integer(is_given ? "attention.key_length" : "embedding_length") / heads;
    if (size < 2 || size > kMost || size % 2 != 0)
        keys.fail(is_given ? "attention.key_length" : "attention.head_count",
                  "leaves heads of " + std::to_string(size) + " elements");
    return int(size);
}

namespace {

// Values must have the size of keys, and RoPE must rotate whole heads.
void check_head_sizes(const GgufKeys& keys) {
    for (const char* same : {"attention.value_length", "rope.dimension_count"}) {
        if (!keys.find(same)) continue;
        const int64_t size = gguf_head_dim(keys.gguf()), own = keys.integer(same);
        if (own != size)
            keys.fail(same, "is " + std::to_string(own) + ", and a head has " +
                                std::to_string(size) + " elements; that is not implemented");
    }
}

// The other members of the config.json made from a GGUF file, and the keys that they come from.
constexpr std::array kGgufOthers{
    GgufKeyRow{"feed_forward_length", "intermediate_size"},
    GgufKeyRow{"expert_feed_forward_length", "moe_intermediate_size"},
    GgufKeyRow{"expert_count", "num_experts"},
    GgufKeyRow{"expert_count", "num_local_experts"},
    GgufKeyRow{"expert_weights_norm", "norm_topk_prob"},
    GgufKeyRow{"attention.sliding_window_pattern", "layer_types"},
    GgufKeyRow{"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    GgufKeyRow{"rope.freq_base", "rope_theta"},
    GgufKeyRow{"rope.scaling.type", "rope_scaling"},
    GgufKeyRow{"rope.scaling.factor", "factor"},
    GgufKeyRow{"rope.scaling.original_context_length", "original_max_position_embeddings"},
    GgufKeyRow{"rope.scaling.yarn_beta_fast", "beta_fast"},
    GgufKeyRow{"rope.scaling.yarn_beta_slow", "beta_slow"},
    GgufKeyRow{"rope.scaling.attn_factor", "attention_factor"},
    GgufKeyRow{"target_hidden_size", "target_hidden_size"},
    GgufKeyRow{"target_layers", "eagle_aux_hidden_state_layer_ids"},
    GgufKeyRow{"norm_before_residual", "norm_before_residual"},
    GgufKeyRow{"norm_before_fc", "norm_before_fc"},
};

}  // namespace

std::map<std::string, std::string> gguf_key_names(const Gguf& gguf) {
    const std::string prefix = GgufKeys(gguf).prefix();
    std::map<std::string, std::string> names;
    for (const GgufKeyRow& row : kGgufIntegers) names[row.hugging_face] = prefix + row.gguf;
    for (const GgufKeyRow& row : kGgufOthers) names[row.hugging_face] = prefix + row.gguf;
    names["vocab_size"] = "token_embd.weight";
    return names;
}

Json gguf_config(const Gguf& gguf) {
    const GgufArchitecture architecture = architecture_of(gguf);
    const GgufKeys keys(gguf);
    Json config = Json::Object{{"model_type", model_type(keys, architecture)}};
    for (const GgufKeyRow& row : kGgufIntegers)
        if (keys.find(row.gguf) && row.hugging_face != std::string_view("sliding_window"))
            config.set(row.hugging_face, keys.integer(row.gguf));
    add_windows(config, keys);
    check_head_sizes(keys);
    add_experts(config, keys, architecture);
    config.set("rms_norm_eps", keys.number("attention.layer_norm_rms_epsilon"));
    config.set("rope_theta", keys.number("rope.freq_base", 10000));
    if (Json scaling = gguf_scaling(keys); !scaling.is_null())
        config.set("rope_scaling", std::move(scaling));
    if (architecture == GgufArchitecture::Eagle3)
        add_head(config, keys);
    else
        config.set("vocab_size", rows_of(gguf, "token_embd.weight"));
    config.set("tie_word_embeddings", !keys.has("output.weight"));
    // Biases of q, k and v need no member: Qwen 2 always has them.
    if (keys.has("blk.0.attn_output.bias")) config.set("attention_bias", true);
    if (keys.has("blk.0.ffn_down.bias")) config.set("mlp_bias", true);
    return config;
}

Json gguf_generation(const Gguf& gguf) {
    const GgufMetadata& metadata = gguf.metadata();
    const std::set<int64_t> ends = gguf_ends(metadata);
    Json generation = Json::Object{{"eos_token_id", Json::Array(ends.begin(), ends.end())}};
    if (metadata.find("general.sampling.temp"))
        generation.set("temperature", metadata.number("general.sampling.temp"));
    if (metadata.find("general.sampling.top_p"))
        generation.set("top_p", metadata.number("general.sampling.top_p"));
    if (metadata.find("general.sampling.top_k"))
        generation.set("top_k", metadata.integer("general.sampling.top_k"));
    return generation;
}

}  // namespace aerie
