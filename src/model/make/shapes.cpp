// The table of shapes. The RoPE scaling of Llama 3.1 and later is left out: it costs no time.
#include "model/make/shapes.h"

#include <algorithm>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {

namespace {

struct NamedShape {
    const char* name;
    int hidden, intermediate, layers;
    AttentionShape attention;  // heads, KV heads, head size
    int vocab, context;
    double rope_theta;
    bool tied_embeddings;
    const char* architecture = "llama";
    ExpertConfig experts = {};
};

const NamedShape kShapes[] = {
    {"aerie-tiny", 256, 704, 6, {4, 2, 64}, 4096, 2048, 1e4, false},
    {"tinyllama-1.1b", 2048, 5632, 22, {32, 4, 64}, 32000, 2048, 1e4, false},
    {"llama-2-7b", 4096, 11008, 32, {32, 32, 128}, 32000, 4096, 1e4, false},
    {"llama-2-13b", 5120, 13824, 40, {40, 40, 128}, 32000, 4096, 1e4, false},
    {"llama-2-70b", 8192, 28672, 80, {64, 8, 128}, 32000, 4096, 1e4, false},
    {"llama-3-8b", 4096, 14336, 32, {32, 8, 128}, 128256, 8192, 5e5, false},
    {"llama-3-70b", 8192, 28672, 80, {64, 8, 128}, 128256, 8192, 5e5, false},
    {"llama-3.1-8b", 4096, 14336, 32, {32, 8, 128}, 128256, 131072, 5e5, false},
    {"llama-3.2-1b", 2048, 8192, 16, {32, 8, 64}, 128256, 131072, 5e5, true},
    {"llama-3.2-3b", 3072, 8192, 28, {24, 8, 128}, 128256, 131072, 5e5, true},
    {"llama-3.3-70b", 8192, 28672, 80, {64, 8, 128}, 128256, 131072, 5e5, false},
    {"mistral-7b", 4096, 14336, 32, {32, 8, 128}, 32768, 32768, 1e6, false, "mistral"},
    {"qwen2.5-7b", 3584, 18944, 28, {28, 4, 128}, 152064, 32768, 1e6, false, "qwen2"},
    {"qwen3-8b", 4096, 12288, 36, {32, 8, 128}, 151936, 40960, 1e6, false, "qwen3"},
    {"mixtral-8x7b",
     4096,
     14336,
     32,
     {32, 8, 128},
     32000,
     32768,
     1e6,
     false,
     "mixtral",
     {.count = 8, .chosen = 2, .intermediate = 14336, .normalised = true}},
    {"qwen3-30b-a3b",
     2048,
     6144,
     48,
     {32, 4, 128},
     151936,
     40960,
     1e6,
     false,
     "qwen3_moe",
     {.count = 128, .chosen = 8, .intermediate = 768, .normalised = true}},
};

ModelConfig config_of(const NamedShape& shape) {
    ModelConfig config;
    config.architecture = shape.architecture;
    config.experts = shape.experts;
    config.experts.names = find_expert_names(shape.architecture);
    config.hidden = shape.hidden;
    config.intermediate = shape.intermediate;
    config.layers = shape.layers;
    config.attention = shape.attention;
    config.vocab = shape.vocab;
    config.context = shape.context;
    config.rms_epsilon = 1e-5f;
    config.rope.theta = shape.rope_theta;
    config.tied_embeddings = shape.tied_embeddings;
    config.eos_ids = {2};
    return config;
}

// A head size that is not given follows from the other sizes, as in config.json.
void apply(const ShapeChanges& changes, ModelConfig& config) {
    config.hidden = changes.hidden.value_or(config.hidden);
    config.intermediate = changes.intermediate.value_or(config.intermediate);
    if (config.experts.count > 0)
        config.experts.intermediate = changes.intermediate.value_or(config.experts.intermediate);
    config.layers = changes.layers.value_or(config.layers);
    config.vocab = changes.vocab.value_or(config.vocab);
    config.context = changes.context.value_or(config.context);
    AttentionShape& attention = config.attention;
    const bool follows = changes.hidden || changes.heads;
    if (changes.heads) attention.kv_heads = *changes.heads;
    attention.heads = changes.heads.value_or(attention.heads);
    attention.kv_heads = changes.kv_heads.value_or(attention.kv_heads);
    // Padding is found when parse_model_config reads the configuration.
    attention.head_dim =
        changes.head_dim.value_or(follows ? config.hidden / attention.heads : attention.head_dim);
}

}  // namespace

std::vector<std::string> shape_names() {
    std::vector<std::string> names;
    for (const NamedShape& shape : kShapes) names.emplace_back(shape.name);
    return names;
}

ModelConfig model_shape(const std::string& name, const ShapeChanges& changes) {
    const auto* shape = std::find_if(std::begin(kShapes), std::end(kShapes),
                                     [&](const NamedShape& one) { return one.name == name; });
    if (shape == std::end(kShapes)) {
        std::string known;
        for (const std::string& one : shape_names()) known += (known.empty() ? "" : ", ") + one;
        throw UsageError("no shape named " + in_quotes(name) + "; there is " + known);
    }
    ModelConfig config = config_of(*shape);
    apply(changes, config);
    try {
        return parse_model_config(config_json(config), name);
    } catch (const Error& error) {
        throw UsageError(error.what());
    }
}

Json sizes_json(const ModelConfig& config) {
    Json json = Json::Object{{"layers", config.layers},
                             {"hidden", config.hidden},
                             {"intermediate", config.intermediate},
                             {"heads", config.attention.heads},
                             {"kv_heads", config.attention.kv_heads},
                             {"head_dim", config.size_of_head()},
                             {"vocabulary", config.vocab}};
    if (config.experts.count > 0) {
        json.set("experts", config.experts.count);
        json.set("experts_of_a_token", config.experts.chosen);
        json.set("expert_intermediate", config.experts.intermediate);
    }
    return json;
}

namespace {

void add_windows(Json& json, const ModelConfig& config) {
    Json::Array types;
    int widest = 0;
    for (const int window : config.windows) {
        types.emplace_back(window > 0 ? "sliding_attention" : "full_attention");
        widest = std::max(widest, window);
    }
    json.set("sliding_window", widest > 0 ? Json(widest) : Json());
    if (widest == 0) return;
    json.set("use_sliding_window", true);
    json.set("layer_types", std::move(types));
}

}  // namespace

Json config_json(const ModelConfig& config) {
    return config_json(config, class_name(config.architecture));
}

Json config_json(const ModelConfig& config, const std::string& class_name) {
    Json json = Json::Object{{"architectures", Json::Array{class_name}},
                             {"model_type", config.architecture},
                             {"hidden_size", config.hidden},
                             {"intermediate_size", config.intermediate},
                             {"num_hidden_layers", config.layers},
                             {"num_attention_heads", config.attention.heads},
                             {"num_key_value_heads", config.attention.kv_heads},
                             {"head_dim", config.size_of_head()},
                             {"vocab_size", config.vocab},
                             {"max_position_embeddings", config.context},
                             {"rms_norm_eps", config.rms_epsilon},
                             {"rope_theta", config.rope.theta},
                             {"hidden_act", "silu"},
                             {"tie_word_embeddings", config.tied_embeddings},
                             {"attention_bias", config.attention_output_bias},
                             {"mlp_bias", config.mlp_bias},
                             {"bos_token_id", 1},
                             {"eos_token_id", 2}};
    if (Json scaling = rope_json(config.rope); !scaling.is_null())
        json.set("rope_scaling", std::move(scaling));
    add_windows(json, config);
    if (config.experts.count > 0) add_experts(json, config.experts);
    return json;
}

}  // namespace aerie
