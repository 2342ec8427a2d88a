// One table of keys, and what is no plain number.
#include "io/gguf_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/utf8.h"
#include "io/gguf_keys.h"

namespace aerie {

namespace {

class Keys {
  public:
    explicit Keys(const Gguf& gguf) : gguf_(gguf), metadata_(gguf.metadata()) {
        prefix_ = std::string(metadata_.string("general.architecture")) + ".";
    }

    const GgufValue* find(const std::string& key) const { return metadata_.find(prefix_ + key); }
    int64_t integer(const std::string& key) const { return metadata_.integer(prefix_ + key); }
    double number(const std::string& key) const { return metadata_.number(prefix_ + key); }
    std::string string(const std::string& key) const {
        return std::string(metadata_.string(prefix_ + key));
    }
    int64_t integer(const std::string& key, int64_t fallback) const {
        return find(key) ? integer(key) : fallback;
    }
    double number(const std::string& key, double fallback) const {
        return find(key) ? number(key) : fallback;
    }
    bool boolean(const std::string& key, bool fallback) const {
        return find(key) ? metadata_.boolean(prefix_ + key) : fallback;
    }
    const GgufValue& integers(const std::string& key) const {
        return metadata_.integers(prefix_ + key);
    }
    [[noreturn]] void fail(const std::string& key, const std::string& why) const {
        throw Error(metadata_.file() + ": " + in_quotes(prefix_ + key) + " " + why);
    }
    bool has(const char* tensor) const { return gguf_.find(tensor) != nullptr; }
    const Gguf& gguf() const { return gguf_; }

  private:
    const Gguf& gguf_;
    const GgufMetadata& metadata_;
    std::string prefix_;
};

// What RoPE's frequencies are divided by; nothing in files without. Throws Error.
std::vector<float> factors_of(const Gguf& gguf) {
    const GgufTensor* tensor = gguf.find("rope_freqs.weight");
    if (!tensor) return {};
    constexpr int64_t kMost = 1024;
    if (tensor->shape.size() != 1 || tensor->shape[0] > kMost)
        throw Error(gguf.describe(*tensor) + " has shape " + tensor->shape_text() +
                    ", expected [head size / 2]");
    std::vector<float> factors(size_t(tensor->shape[0]));
    gguf.read_rows(*tensor, 0, factors);
    return factors;
}

// YaRN's attention factor is made of its own part and the factor's.
Json yarn(const Keys& keys, double factor) {
    Json scaling = Json::Object{{"rope_type", "yarn"}, {"factor", factor}};
    for (const auto& [gguf, hugging_face] :
         {GgufKeyRow{"rope.scaling.yarn_beta_fast", "beta_fast"},
          GgufKeyRow{"rope.scaling.yarn_beta_slow", "beta_slow"}})
        if (keys.find(gguf)) scaling.set(hugging_face, keys.number(gguf));
    double own = keys.number("rope.scaling.attn_factor", 1);
    own = keys.number("rope.scaling.yarn_attn_factor", own);
    if (own != 1)
        scaling.set("attention_factor", own * (1 + 0.1 * std::log(std::max(factor, 1.0))));
    if (keys.number("rope.scaling.yarn_ext_factor", 1) != 1)
        keys.fail("rope.scaling.yarn_ext_factor", "is not 1; that is not implemented");
    return scaling;
}

// rope_scaling; null: none.
Json scaling_of(const Keys& keys) {
    const std::vector<float> factors = factors_of(keys.gguf());
    const double linear = keys.number("rope.scale_linear", 1);  // of older files
    std::string type = linear == 1 ? "none" : "linear";
    if (keys.find("rope.scaling.type")) type = keys.string("rope.scaling.type");
    const double factor = keys.number("rope.scaling.factor", linear);
    Json scaling;
    if (type == "linear") {
        if (factor != 1) scaling = Json::Object{{"rope_type", "linear"}, {"factor", factor}};
    } else if (type == "yarn") {
        scaling = yarn(keys, factor);
        if (keys.find("rope.scaling.original_context_length"))
            scaling.set("original_max_position_embeddings",
                        keys.integer("rope.scaling.original_context_length"));
    } else if (type != "none") {
        keys.fail("rope.scaling.type", "is " + in_quotes(type) + "; that is not implemented");
    }
    if (factors.empty()) return scaling;
    if (!scaling.is_null()) keys.fail("rope.scaling.type", "stands beside rope_freqs.weight");
    return Json::Object{{"rope_type", "factors"},
                        {"factors", Json::Array(factors.begin(), factors.end())}};
}

// "llama" is three of Hugging Face's architectures; the layers tell which.
const char* model_type(const Keys& keys, GgufArchitecture architecture) {
    switch (architecture) {
        case GgufArchitecture::Qwen2:
            return "qwen2";
        case GgufArchitecture::Qwen3:
            return "qwen3";
        case GgufArchitecture::Qwen3Moe:
            return "qwen3_moe";
        case GgufArchitecture::Eagle3:
            return "eagle3";
        case GgufArchitecture::Llama:
            break;
    }
    if (keys.integer("expert_count", 0) > 0) return "mixtral";
    return keys.find("attention.sliding_window") ? "mistral" : "llama";
}

void add_experts(Json& config, const Keys& keys, GgufArchitecture architecture) {
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
    // Without the key, what every program that reads such files does.
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

// Which layers have the window; all of them unless the file says.
void add_windows(Json& config, const Keys& keys) {
    constexpr const char* kPattern = "attention.sliding_window_pattern";
    if (!keys.find("attention.sliding_window")) {
        // None, whatever the architecture has where config.json says nothing.
        config.set("sliding_window", Json());
        return;
    }
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
    return found->shape.front();
}

// What an EAGLE-3 head has beside its layer. Its embedding and LM head may be the target's.
void add_head(Json& config, const Keys& keys) {
    constexpr size_t kMostTaps = 64;  // more are too many for any reader
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
    for (size_t i = 0; i < std::min(layers.size(), kMostTaps); ++i)
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
                    "; implemented are llama, qwen2, qwen3, qwen3moe, and eagle3 for heads");
    return *found;
}

int gguf_head_dim(const Gguf& gguf) {
    constexpr int64_t kMost = 1 << 16;
    const Keys keys(gguf);
    const bool is_given = keys.find("attention.key_length");
    const int64_t heads = is_given ? 1 : keys.integer("attention.head_count");
    const int64_t size = keys.integer(is_given ? "attention.key_length" : "embedding_length") /
                         std::max<int64_t>(heads, 1);
    if (heads < 1 || size < 2 || size > kMost || size % 2 != 0)
        keys.fail("attention.head_count", "or 'attention.key_length' leaves heads of " +
                                              std::to_string(size) + " elements");
    return int(size);
}

Json gguf_config(const Gguf& gguf) {
    const GgufArchitecture architecture = architecture_of(gguf);
    const Keys keys(gguf);
    Json config = Json::Object{{"model_type", model_type(keys, architecture)}};
    for (const GgufKeyRow& row : kGgufIntegers)
        if (keys.find(row.gguf)) config.set(row.hugging_face, keys.integer(row.gguf));
    add_windows(config, keys);
    const int64_t key_length = keys.integer("attention.key_length", 0);
    for (const char* same : {"attention.value_length", "rope.dimension_count"})
        if (key_length > 0 && keys.integer(same, key_length) != key_length)
            keys.fail(same, "is not the size of a head; that is not implemented");
    add_experts(config, keys, architecture);
    config.set("rms_norm_eps", keys.number("attention.layer_norm_rms_epsilon"));
    config.set("rope_theta", keys.number("rope.freq_base", 10000));
    if (Json scaling = scaling_of(keys); !scaling.is_null())
        config.set("rope_scaling", std::move(scaling));
    if (architecture == GgufArchitecture::Eagle3)
        add_head(config, keys);
    else
        config.set("vocab_size", rows_of(gguf, "token_embd.weight"));
    config.set("tie_word_embeddings", !keys.has("output.weight"));
    // Qwen 2 always has those of q, k and v.
    if (keys.has("blk.0.attn_output.bias")) config.set("attention_bias", true);
    if (keys.has("blk.0.ffn_down.bias")) config.set("mlp_bias", true);
    return config;
}

namespace {

// Texts of tokens that end a turn: files name one end only, and chat models have several.
bool ends_turns(std::string_view token) {
    for (const char* known : {"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|endoftext|>",
                              "<|end_of_text|>", "<｜end▁of▁sentence｜>", "</s>"})
        if (token == known) return true;
    return false;
}

}  // namespace

Json gguf_generation(const Gguf& gguf) {
    constexpr int64_t kControl = 3;
    const GgufMetadata& metadata = gguf.metadata();
    std::set<int64_t> ends;
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                            "tokenizer.ggml.eom_token_id"})
        if (metadata.find(key)) ends.insert(metadata.integer(key));
    if (metadata.find("tokenizer.ggml.token_type")) {
        const GgufValue& tokens = metadata.strings("tokenizer.ggml.tokens");
        const GgufValue& types = metadata.integers("tokenizer.ggml.token_type");
        for (size_t i = 0; i < std::min(tokens.size(), types.size()); ++i)
            if (types.integer(i) == kControl && ends_turns(tokens.string(i)))
                ends.insert(int64_t(i));
    }
    Json generation = Json::Object{{"eos_token_id", Json::Array(ends.begin(), ends.end())}};
    if (!metadata.find("general.sampling.temp")) return generation;
    generation.set("do_sample", true);
    generation.set("temperature", metadata.number("general.sampling.temp"));
    if (metadata.find("general.sampling.top_p"))
        generation.set("top_p", metadata.number("general.sampling.top_p"));
    if (metadata.find("general.sampling.top_k"))
        generation.set("top_k", metadata.integer("general.sampling.top_k"));
    return generation;
}

}  // namespace aerie
