// config.json and generation_config.json: every field is range-checked before anything is sized by
// it.
#include "model/config.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {

namespace {

// Typed access to the fields of one JSON object; every failure names file and field.
class Fields {
  public:
    Fields(const Json& json, std::string source) : json_(json), source_(std::move(source)) {
        if (!json.object()) throw Error(source_ + ": expected a JSON object");
    }

    [[noreturn]] void fail(const std::string& what) const { throw Error(source_ + ": " + what); }

    // Absent and null are the same.
    const Json* find(const char* key) const {
        const Json* value = json_.find(key);
        return value && !value->is_null() ? value : nullptr;
    }

    int integer(const char* key, int low, int high, std::optional<int> fallback = {}) const {
        const Json* value = find(key);
        if (!value && fallback) return *fallback;
        if (!value) fail(std::string("'") + key + "' is missing");
        int64_t number = 0;
        if (!value->integer(number) || number < low || number > high)
            fail(std::string("'") + key + "' must be " +
                 (low == high ? std::to_string(low)
                              : "a whole number from " + std::to_string(low) + " to " +
                                    std::to_string(high)));
        return int(number);
    }

    std::optional<double> number(const char* key, double low, double high) const {
        const Json* value = find(key);
        if (!value) return {};
        const double number = value->number();
        if (!value->is_number() || !(number >= low && number <= high))
            fail(std::string("'") + key + "' must be a number from " + text(low) + " to " +
                 text(high));
        return number;
    }

    bool boolean(const char* key, bool fallback) const {
        const Json* value = find(key);
        if (!value) return fallback;
        if (!value->boolean()) fail(std::string("'") + key + "' must be true or false");
        return *value->boolean();
    }

    std::string string(const char* key, const std::string& fallback) const {
        const Json* value = find(key);
        if (!value) return fallback;
        if (!value->string()) fail(std::string("'") + key + "' must be a string");
        return *value->string();
    }

    // Of an object within the object.
    Fields object(const char* key) const { return {*find(key), source_ + ": '" + key + "'"}; }

    // One id or a list of ids.
    std::vector<int> ids(const char* key, int vocab) const {
        std::vector<int> result;
        const Json* value = find(key);
        if (!value) return result;
        const auto add = [&](const Json& item) {
            int64_t id = 0;
            if (!item.integer(id) || id < 0 || id >= vocab)
                fail(std::string("'") + key + "' must hold token ids below " +
                     std::to_string(vocab));
            result.push_back(int(id));
        };
        if (value->array() && value->array()->size() <= 64)
            for (const Json& item : *value->array()) add(item);
        else
            add(*value);
        return result;
    }

  private:
    static std::string text(double value) {
        std::string digits = std::to_string(value);
        digits.erase(digits.find_last_not_of('0') + 1);
        if (digits.back() == '.') digits.pop_back();
        return digits;
    }

    const Json& json_;
    std::string source_;
};

// Scaled RoPE is not implemented. Older configurations say so in rope_scaling, with the angle's
// base beside it; those of transformers 5 have both in rope_parameters.
double parse_rope_theta(const Fields& fields) {
    std::optional<double> theta = fields.number("rope_theta", 1, 1e12);
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
        const Json* value = fields.find(key);
        if (!value) continue;
        const Fields rope = fields.object(key);
        for (const auto& [name, item] : *value->object())
            if (name != "rope_type" && name != "type" && name != "rope_theta")
                rope.fail(in_quotes(name) + " is set; scaled RoPE is not implemented");
        for (const char* type : {"rope_type", "type"})
            if (const std::string kind = rope.string(type, "default"); kind != "default")
                rope.fail("RoPE of type " + in_quotes(kind) + " is not implemented");
        const std::optional<double> inner = rope.number("rope_theta", 1, 1e12);
        if (inner && theta && *inner != *theta)
            rope.fail("'rope_theta' differs from the one above");
        if (inner) theta = inner;
    }
    return theta.value_or(10000);
}

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
    config.rope_theta = parse_rope_theta(fields);
    if (const std::string act = fields.string("hidden_act", "silu"); act != "silu")
        fields.fail("'hidden_act' is '" + act + "'; only 'silu' is implemented");
    return config;
}

}  // namespace

Limits pass_limits(const ModelConfig& config, int rows, int slots) {
    const AttentionShape& attention = config.attention;
    return {.rows = rows,
            .top_k = kMaxTopK,
            .widest = std::max({2 * config.intermediate, 2 * config.hidden, config.qkv_columns()}),
            .vocab = config.vocab,
            .context = slots,
            .heads = attention.heads,
            .queries = attention.heads / attention.kv_heads,
            .head_dim = attention.head_dim};
}

ModelConfig parse_model_config(const Json& json, const std::string& source) {
    const Fields fields(json, source);
    const std::string type = fields.string("model_type", "missing");
    if (type != "llama") fields.fail("'model_type' is '" + type + "'; only 'llama' is implemented");
    ModelConfig config = parse_shape(fields);
    config.architecture = type;
    config.layers = fields.integer("num_hidden_layers", 1, 1024);
    config.context = fields.integer("max_position_embeddings", 2, 1 << 24, 2048);
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
    if (fields.boolean("qkv_bias", false))
        fields.fail("'qkv_bias' is true; attention biases are not implemented");
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
