// config.json and generation_config.json: every field is range-checked before anything is sized by
// it.
#include "model/config.h"

#include <algorithm>

#include "model/config_fields.h"

namespace aerie {

namespace {

// The sizes that a target and a head share.
ModelConfig parse_shape(const Fields& fields) {
    ModelConfig config;
    config.hidden = fields.integer("hidden_size", 16, 1 << 16);
    config.intermediate = fields.integer("intermediate_size", 1, 1 << 18);
    config.vocab = fields.integer("vocab_size", 2, 1 << 20);
    config.attention.heads = fields.integer("num_attention_heads", 1, 1024);
    config.attention.kv_heads =
        fields.integer("num_key_value_heads", 1, 1024, config.attention.heads);
    if (config.attention.heads % config.attention.kv_heads != 0)
        fields.fail("'num_attention_heads' must be a multiple of 'num_key_value_heads'");
    if (!fields.find("head_dim") && config.hidden % config.attention.heads != 0)
        fields.fail("'hidden_size' must be a multiple of 'num_attention_heads'");
    config.attention.head_dim =
        fields.integer("head_dim", 16, 1024, config.hidden / config.attention.heads);
    if (config.attention.head_dim % 16 != 0)
        fields.fail("the head size must be a multiple of 16, it is " +
                    std::to_string(config.attention.head_dim));
    config.rms_epsilon = float(fields.number("rms_norm_eps", 0, 1).value_or(1e-6));
    config.context = fields.integer("max_position_embeddings", 2, 1 << 24, 2048);
    config.rope = parse_rope(fields, config.context);
    if (const std::string act = fields.string("hidden_act", "silu"); act != "silu")
        fields.fail("'hidden_act' is '" + act + "'; only 'silu' is implemented");
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

// What an architecture has that its configuration does not say.
struct Architecture {
    const char* type;  // model_type
    bool qkv_bias, qk_norm;
    bool may_have_window;
};
constexpr Architecture kArchitectures[] = {
    {"llama", false, false, false},  {"mistral", false, false, true},
    {"qwen2", true, false, true},    {"qwen3", false, true, true},
    {"mixtral", false, false, true}, {"qwen3_moe", false, true, true}};

const Architecture& architecture_of(const Fields& fields) {
    const std::string type = fields.string("model_type", "missing");
    std::string known;
    for (const Architecture& one : kArchitectures) {
        if (type == one.type) return one;
        known += (known.empty() ? "'" : ", '") + std::string(one.type) + "'";
    }
    fields.fail("'model_type' is '" + type + "'; implemented are " + known);
}

// Positions that a row sees are not limited, so a window must be switched off or hold everything.
void check_window(const Fields& fields, int context) {
    if (!fields.find("sliding_window") || !fields.boolean("use_sliding_window", true)) return;
    if (fields.integer("sliding_window", 1, 1 << 24) < context)
        fields.fail("'sliding_window' is smaller than the context; windows are not implemented");
}

}  // namespace

ModelConfig parse_model_config(const Json& json, const std::string& source) {
    const Fields fields(json, source);
    const Architecture& architecture = architecture_of(fields);
    ModelConfig config = parse_shape(fields);
    config.architecture = architecture.type;
    config.qkv_bias = architecture.qkv_bias;
    config.qk_norm = architecture.qk_norm;
    if (architecture.may_have_window) check_window(fields, config.context);
    config.layers = fields.integer("num_hidden_layers", 1, 1024);
    if (const ExpertNames* names = find_expert_names(config.architecture))
        config.experts = parse_experts(fields, *names, config.layers);
    config.tied_embeddings = fields.boolean("tie_word_embeddings", false);
    config.eos_ids = fields.ids("eos_token_id", config.vocab);
    for (const char* bias : {"attention_bias", "mlp_bias"})
        if (fields.boolean(bias, false))
            fields.fail(std::string("'") + bias + "' is true; biases are not implemented");
    return config;
}

ModelConfig parse_head_config(const Json& json, const std::string& source) {
    const Fields fields(json, source);
    if (fields.find("draft_vocab_size") || fields.find("eagle_aux_hidden_state_layer_ids"))
        fields.fail("this is an EAGLE-3 head; only EAGLE-1/2 heads are implemented");
    ModelConfig config = parse_shape(fields);
    config.architecture = "eagle";
    config.layers = fields.integer("num_hidden_layers", 1, 1, 1);
    config.qkv_bias = fields.boolean("qkv_bias", false);
    return config;
}

GenerationConfig parse_generation_config(const Json& json, const std::string& source) {
    const Fields fields(json, source);
    GenerationConfig config;
    config.eos_ids = fields.ids("eos_token_id", 1 << 20);
    config.do_sample = fields.boolean("do_sample", false);
    if (!config.do_sample) return config;
    config.temperature = fields.number("temperature", 0, 100);
    config.top_p = fields.number("top_p", 0, 1);
    config.repetition_penalty = fields.number("repetition_penalty", 0.01, 100);
    if (fields.find("top_k")) config.top_k = fields.integer("top_k", 0, 1 << 20);
    return config;
}

ModelConfig target_config(const ModelSource& source) {
    return parse_model_config(source.config.json, source.config.file);
}

ModelConfig head_config(const ModelSource& source) {
    return parse_head_config(source.config.json, source.config.file);
}

GenerationConfig generation_config(const ModelSource& source) {
    return source.generation
               ? parse_generation_config(source.generation->json, source.generation->file)
               : GenerationConfig{};
}

}  // namespace aerie
