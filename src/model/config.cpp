// config.json and generation_config.json: every field is range-checked before anything is sized by
// it.
#include "model/config.h"

#include <algorithm>
#include <map>

#include "core/utf8.h"
#include "model/config_fields.h"

namespace aerie {

namespace {

// Ops take heads of multiples of 16 elements; others are padded (model/padded_heads.h).
void parse_head_size(const Fields& fields, ModelConfig& config) {
    constexpr int kUnit = 16;
    const int size =
        fields.integer("head_dim", 2, 1024, std::max(config.hidden / config.attention.heads, 2));
    if (size % 2 != 0)
        fields.fail("the head size must be even, for its halves turn together; it is " +
                    std::to_string(size));
    config.attention.head_dim = (size + kUnit - 1) / kUnit * kUnit;
    if (size != config.attention.head_dim) config.file_head_dim = size;
}

Activation parse_activation(const Fields& fields) {
    static const std::map<std::string, Activation> known = {{"silu", Activation::silu}};
    const std::string name = fields.string("hidden_act", "silu");
    if (const auto found = known.find(name); found != known.end()) return found->second;
    fields.fail("'hidden_act' is " + in_quotes(name) + "; only 'silu' is implemented");
}

// The sizes that a target and a head share.
ModelConfig parse_shape(const Fields& fields, int layers) {
    ModelConfig config;
    config.layers = layers;
    config.hidden = fields.integer("hidden_size", 16, 1 << 16);
    config.intermediate = fields.layer_integer("intermediate_size", 1, 1 << 18, layers);
    config.vocab = fields.integer("vocab_size", 2, 1 << 20);
    config.attention.heads = fields.layer_integer("num_attention_heads", 1, 1024, layers);
    config.attention.kv_heads =
        fields.layer_integer("num_key_value_heads", 1, 1024, layers, config.attention.heads);
    if (config.attention.heads % config.attention.kv_heads != 0)
        fields.fail("'num_attention_heads' must be a multiple of 'num_key_value_heads'");
    if (!fields.find("head_dim") && config.hidden % config.attention.heads != 0)
        fields.fail("'hidden_size' must be a multiple of 'num_attention_heads'");
    parse_head_size(fields, config);
    config.rms_epsilon = float(fields.number("rms_norm_eps", 0, 1).value_or(1e-6));
    config.context = fields.integer("max_position_embeddings", 2, 1 << 24, 2048);
    config.context_is_assumed = !fields.find("max_position_embeddings");
    config.rope = parse_rope(fields, config.context);
    const size_t factors = config.rope.factors.size(), pairs = size_t(config.size_of_head() / 2);
    if (config.rope.scaling == Rope::Scaling::factors && factors != pairs)
        fields.fail("RoPE has " + std::to_string(factors) + " factors, expected " +
                    std::to_string(pairs));
    config.activation = parse_activation(fields);
    return config;
}

}  // namespace

Limits pass_limits(const ModelConfig& config, int rows, int slots) {
    const AttentionShape& attention = config.attention;
    return {.rows = rows,
            .top_k = kMaxTopK,
            .widest = std::max({2 * config.intermediate, 2 * config.experts.intermediate,
                                2 * config.hidden, config.qkv_columns()}),
            .vocab = config.vocab,
            .context = slots,
            .heads = attention.heads,
            .queries = attention.heads / attention.kv_heads,
            .head_dim = attention.head_dim,
            .places = rows * config.experts.chosen};
}

namespace {

// The layers that have windows where 'sliding_window' is set and 'use_sliding_window' is not false.
enum class Windows {
    never,
    everywhere,
    later,  // from layer 'max_window_layers' on
};

int window_size(const Fields& fields, Windows rule) {
    constexpr const char* kKey = "sliding_window";
    if (rule == Windows::never || !fields.boolean("use_sliding_window", true)) return 0;
    // Unlike elsewhere, null is not the default.
    if (const Json* value = fields.json().find(kKey); value && value->is_null()) return 0;
    return fields.find(kKey) ? fields.integer(kKey, 1, 1 << 24) : 0;
}

// Windows by 'layer_types', which names the kind of attention of each layer.
std::vector<int> listed_windows(const Fields& fields, const Json& types, int window, int layers) {
    const std::string entry = "'layer_types' must hold 'full_attention' or 'sliding_attention'";
    if (!types.array() || types.array()->size() != size_t(layers))
        fields.fail(entry + " for each of " + std::to_string(layers) + " layers");
    std::vector<int> windows;
    for (const Json& type : *types.array()) {
        if (!type.string() ||
            (*type.string() != "full_attention" && *type.string() != "sliding_attention"))
            fields.fail(entry);
        const bool slides = *type.string() == "sliding_attention";
        if (slides && window == 0)
            fields.fail("'layer_types' has windows, but no 'sliding_window' is in use");
        windows.push_back(slides ? window : 0);
    }
    return windows;
}

std::vector<int> parse_windows(const Fields& fields, Windows rule, int layers) {
    const int window = window_size(fields, rule);
    std::vector<int> windows;
    if (const Json* types = fields.find("layer_types")) {
        windows = listed_windows(fields, *types, window, layers);
    } else {
        const int first =
            rule == Windows::later ? fields.integer("max_window_layers", 0, 1 << 16) : 0;
        for (int i = 0; i < layers; ++i) windows.push_back(i < first ? 0 : window);
    }
    const bool any = std::any_of(windows.begin(), windows.end(), [](int w) { return w > 0; });
    return any ? windows : std::vector<int>{};
}

// Biases beyond those that the architecture always has.
void parse_biases(const Fields& fields, ModelConfig& config) {
    if (!config.qkv_bias && fields.boolean("attention_bias", false))
        config.qkv_bias = config.attention_output_bias = true;
    config.mlp_bias = fields.boolean("mlp_bias", false);
}

// Properties of an architecture that its configuration does not state, and transformers' defaults
// of members that it may lack, where no other architecture has the same.
struct Architecture {
    const char* type;  // model_type
    const char* class_name;
    bool qkv_bias, qk_norm;
    Windows windows;
    Json defaults;
};

const std::vector<Architecture>& architectures() {
    static const Json mistral = Json::Object{{"sliding_window", 4096}};
    static const Json qwen = Json::Object{
        {"sliding_window", 4096}, {"use_sliding_window", false}, {"max_window_layers", 28}};
    static const std::vector<Architecture> all = {
        {"llama", "LlamaForCausalLM", false, false, Windows::never, {}},
        {"mistral", "MistralForCausalLM", false, false, Windows::everywhere, mistral},
        {"qwen2", "Qwen2ForCausalLM", true, false, Windows::later, qwen},
        {"qwen3", "Qwen3ForCausalLM", false, true, Windows::later, qwen},
        {"mixtral", "MixtralForCausalLM", false, false, Windows::everywhere, mistral},
        {"qwen3_moe", "Qwen3MoeForCausalLM", false, true, Windows::later, qwen}};
    return all;
}

const Architecture& architecture_of(const Fields& fields) {
    const std::string type = fields.string("model_type", "");
    std::string known;
    for (const Architecture& one : architectures()) {
        if (type == one.type) return one;
        known += (known.empty() ? "'" : ", '") + std::string(one.type) + "'";
    }
    fields.fail("'model_type' is " + (type.empty() ? "missing" : in_quotes(type)) +
                    "; implemented are " + known,
                Cause::unsupported);
}

}  // namespace

const char* class_name(const std::string& model_type) {
    for (const Architecture& one : architectures())
        if (model_type == one.type) return one.class_name;
    return "LlamaForCausalLM";
}

namespace {

ModelConfig model_config(Fields fields) {
    const Architecture& architecture = architecture_of(fields);
    fields.use_defaults(architecture.defaults);
    ModelConfig config = parse_shape(fields, fields.integer("num_hidden_layers", 1, 1024));
    config.architecture = architecture.type;
    config.qkv_bias = architecture.qkv_bias;
    config.qk_norm = architecture.qk_norm;
    config.windows = parse_windows(fields, architecture.windows, config.layers);
    parse_biases(fields, config);
    if (const ExpertNames* names = find_expert_names(config.architecture))
        config.experts = parse_experts(fields, *names, config.layers);
    config.tied_embeddings = fields.boolean("tie_word_embeddings", false);
    config.eos_ids = fields.ids("eos_token_id", config.vocab);
    return config;
}

}  // namespace

ModelConfig parse_model_config(const Json& json, const std::string& source) {
    return model_config(Fields(json, source));
}

Fields layer_fields(const Fields& all) {
    constexpr const char* kLayer = "transformer_layer_config";
    return all.find(kLayer) ? all.object(kLayer) : all;
}

ModelConfig parse_layer_config(const Fields& layer) {
    ModelConfig config = parse_shape(layer, 1);
    config.windows = parse_windows(layer, Windows::everywhere, 1);
    config.qkv_bias = layer.boolean("qkv_bias", false);
    parse_biases(layer, config);
    return config;
}

GenerationConfig parse_generation_config(const Json& json, const std::string& source) {
    const Fields fields(json, source);
    GenerationConfig config;
    config.eos_ids = fields.ids("eos_token_id", 1 << 20);
    if (fields.find("do_sample")) config.do_sample = fields.boolean("do_sample", false);
    config.temperature = fields.number("temperature", 0, 100);
    config.top_p = fields.number("top_p", 0, 1);
    config.repetition_penalty = fields.number("repetition_penalty", 0.01, 100);
    if (fields.find("top_k")) config.top_k = fields.integer("top_k", 0, 1 << 20);
    return config;
}

ModelConfig target_config(const ModelSource& source) {
    return model_config(Fields(source.config));
}

GenerationConfig generation_config(const ModelSource& source) {
    return source.generation
               ? parse_generation_config(source.generation->json, source.generation->file)
               : GenerationConfig{};
}

}  // namespace aerie
