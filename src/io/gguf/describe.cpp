// One table of keys, and the members that are not plain numbers.
#include "io/gguf/describe.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/error.h"
#include "core/utf8.h"
#include "io/gguf/keys.h"

namespace aerie {

namespace {

struct ModelTypeRow {
    std::string_view type;
    GgufArchitecture architecture;
};
constexpr ModelTypeRow kModelTypes[] = {
    {"llama", GgufArchitecture::Llama},   {"mistral", GgufArchitecture::Llama},
    {"mixtral", GgufArchitecture::Llama}, {"qwen2", GgufArchitecture::Qwen2},
    {"qwen3", GgufArchitecture::Qwen3},   {"qwen3_moe", GgufArchitecture::Qwen3Moe}};

constexpr double kFastest = 32, kSlowest = 1;  // YaRN's default betas

double number(const Json& object, const char* key, double fallback) {
    const Json* value = object.find(key);
    return value && value->is_number() ? value->number() : fallback;
}
bool flag(const Json& object, const char* key) {
    const Json* value = object.find(key);
    return value && value->boolean() && *value->boolean();
}

class Description {
  public:
    Description(const Json& config, GgufMetadata& metadata)
        : config_(config),
          metadata_(metadata),
          prefix_(std::string(name(architecture_of(config))) + ".") {}

    void integers();
    void windows();
    void experts();
    void rope();

  private:
    void set(const std::string& key, GgufValue value) {
        metadata_.add(prefix_ + key, std::move(value));
    }
    void set(const std::string& key, const Json* integer) {
        int64_t value = 0;
        if (integer && integer->integer(value)) set(key, GgufValue::of(uint32_t(value)));
    }
    void yarn(const Json& scaling, double factor);

    const Json& config_;
    GgufMetadata& metadata_;
    std::string prefix_;
};

void Description::integers() {
    for (const GgufKeyRow& row : kGgufIntegers) set(row.gguf, config_.find(row.hugging_face));
    for (const char* same : {"attention.value_length", "rope.dimension_count"})
        set(same, config_.find("head_dim"));
    set("vocab_size", config_.find("vocab_size"));
    set("feed_forward_length", config_.find("intermediate_size"));
    set("attention.layer_norm_rms_epsilon",
        GgufValue::of(float(number(config_, "rms_norm_eps", 0))));
}

void Description::windows() {
    const Json* types = config_.find("layer_types");
    if (!types || !types->array()) return;
    const size_t layers = types->array()->size();
    const auto slides = std::make_unique<bool[]>(layers);
    for (size_t i = 0; i < layers; ++i)
        slides[i] = *(*types->array())[i].string() == "sliding_attention";
    if (!std::all_of(slides.get(), slides.get() + layers, [](bool slide) { return slide; }))
        set("attention.sliding_window_pattern", GgufValue::list(std::span(slides.get(), layers)));
}

void Description::experts() {
    for (const char* count : {"num_local_experts", "num_experts"})
        set("expert_count", config_.find(count));
    set("expert_feed_forward_length", config_.find("moe_intermediate_size"));
    if (config_.find("norm_topk_prob") && !flag(config_, "norm_topk_prob"))
        set("expert_weights_norm", GgufValue::of(false));
}

// attention_factor is the product of YaRN's own factor and a further one, which GGUF stores.
void Description::yarn(const Json& scaling, double factor) {
    if (!flag(scaling, "truncate"))
        throw Error("YaRN with 'truncate' false cannot be said in GGUF");
    set("rope.scaling.original_context_length", scaling.find("original_max_position_embeddings"));
    set("rope.scaling.yarn_beta_fast",
        GgufValue::of(float(number(scaling, "beta_fast", kFastest))));
    set("rope.scaling.yarn_beta_slow",
        GgufValue::of(float(number(scaling, "beta_slow", kSlowest))));
    const double usual = 1 + 0.1 * std::log(std::max(factor, 1.0));
    const float own = float(number(scaling, "attention_factor", usual) / usual);
    if (own != 1) set("rope.scaling.attn_factor", GgufValue::of(own));
}

// Factors per frequency are stored as a tensor.
void Description::rope() {
    set("rope.freq_base", GgufValue::of(float(number(config_, "rope_theta", 10000))));
    const Json* scaling = config_.find("rope_scaling");
    if (!scaling) return;
    const std::string& type = *scaling->find("rope_type")->string();
    if (type == "factors") return;
    if (type != "linear" && type != "yarn")
        throw Error("RoPE of type " + in_quotes(type) + " cannot be said in GGUF");
    const double factor = number(*scaling, "factor", 1);
    set("rope.scaling.type", GgufValue::of(std::string_view(type)));
    set("rope.scaling.factor", GgufValue::of(float(factor)));
    if (type == "yarn") yarn(*scaling, factor);
}

}  // namespace

GgufArchitecture architecture_of(const Json& config) {
    const std::string type = *config.find("model_type")->string();
    for (const ModelTypeRow& row : kModelTypes)
        if (row.type == type) return row.architecture;
    throw Error("GGUF has no architecture " + in_quotes(type));
}

void describe_config(const Json& config, GgufMetadata& metadata) {
    const GgufArchitecture architecture = architecture_of(config);
    metadata.add("general.architecture", GgufValue::of(name(architecture)));
    Description description(config, metadata);
    description.integers();
    description.windows();
    description.experts();
    description.rope();
}

std::vector<std::string> unread_elsewhere(const Json& config) {
    std::vector<std::string> lines;
    const auto add = [&](bool is_so, const std::string& line) {
        if (is_so) lines.push_back(line);
    };
    const GgufArchitecture architecture = architecture_of(config);
    const Json* dense = config.find("mlp_only_layers");
    const Json* scaling = config.find("rope_scaling");
    const Json yarn = scaling ? *scaling : Json(Json::Object{});
    const bool is_llama = architecture == GgufArchitecture::Llama;
    add(number(config, "sliding_window", 0) > 0,
        "llama.cpp knows no sliding windows of this architecture: its texts differ once they are "
        "longer than the window");
    add((dense && dense->array() && !dense->array()->empty()) ||
            number(config, "decoder_sparse_step", 1) != 1,
        "llama.cpp cannot load layers without experts ('mlp_only_layers', 'decoder_sparse_step') "
        "of this architecture");
    add(config.find("norm_topk_prob") && !flag(config, "norm_topk_prob"),
        "llama.cpp always normalises the weights of experts ('norm_topk_prob' is false): its texts "
        "differ");
    add(number(yarn, "beta_fast", kFastest) != kFastest ||
            number(yarn, "beta_slow", kSlowest) != kSlowest,
        "llama.cpp may need YaRN's betas on its command line: --yarn-beta-fast, --yarn-beta-slow");
    add(yarn.find("factors") && !is_llama,
        "llama.cpp reads no RoPE factors of this architecture: its texts differ");
    add((flag(config, "attention_bias") || flag(config, "mlp_bias")) && !is_llama,
        "llama.cpp cannot load biases of attention's output and of the feed-forward layers of this "
        "architecture");
    return lines;
}

}  // namespace aerie
