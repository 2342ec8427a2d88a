// Model configurations: the values that are read from them, and odd ones that are refused.
#include "model/config.h"

#include <cmath>

#include "io/damage.h"
#include "model/config_fields.h"
#include "model/toy_model.h"

namespace aerie {
namespace {

using test::error_of;

using Members = std::vector<std::pair<const char*, const char*>>;

// config.json of a small model, with these members added or replaced.
Json config_with(const Members& members, const std::string& type, int layers = 1) {
    ModelConfig shape;
    shape.hidden = 32;
    shape.intermediate = 64;
    shape.layers = layers;
    shape.vocab = 64;
    shape.context = 128;
    shape.attention = {2, 1, 16};
    std::string text = test::config_json(shape);
    text.replace(text.find("llama"), 5, type);
    Json json(Json::Object{});
    for (const auto& [name, value] : members) json.set(name, Json::parse(value, name));
    const Json whole = Json::parse(text, "config");
    for (const auto& [name, value] : *whole.object())
        if (!json.find(name)) json.set(name, value);
    return json;
}

ModelConfig with_member(const char* name, const char* value, const std::string& type = "llama") {
    return parse_model_config(config_with({{name, value}}, type), "config.json");
}

TEST(Config, ReadsTheAngleBaseOfEveryRelease) {
    EXPECT_EQ(with_member("rope_theta", "500000.0").rope.theta, 500000);
    EXPECT_EQ(with_member("rope_parameters", R"({"rope_type":"default","rope_theta":500000.0})")
                  .rope.theta,
              500000);
    EXPECT_EQ(with_member("rope_parameters", R"({"rope_type":"default"})").rope.theta, 10000);
    EXPECT_EQ(with_member("rope_parameters", "null").rope.theta, 10000);
}

TEST(Config, TakesScalingThatDoesNotScale) {
    for (const char* none : {"null", "{}", R"({"type":"default"})", R"({"rope_type":"default"})"})
        EXPECT_EQ(with_member("rope_scaling", none).rope.theta, 10000) << none;
}

TEST(Config, ReadsScaledRope) {
    const Rope linear = with_member("rope_scaling", R"({"type":"linear","factor":2.0})").rope;
    EXPECT_EQ(linear.scaling, Rope::Scaling::linear);
    for (int pair : {0, 3, 7})
        EXPECT_EQ(linear.frequency(pair, 16), Rope().frequency(pair, 16) / 2);
    const Rope llama3 = with_member("rope_parameters",
                                    R"({"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,
                        "high_freq_factor":4.0,"original_max_position_embeddings":64,
                        "rope_theta":500000.0})")
                            .rope;
    EXPECT_EQ(llama3.theta, 500000);
    EXPECT_EQ(llama3.trained_context, 64);
    EXPECT_EQ(llama3.frequency(0, 16), 1) << "fast";
    EXPECT_DOUBLE_EQ(llama3.frequency(7, 16), std::pow(500000, -14.0 / 16) / 8) << "slow";
    // The model has 128 positions, 32 of which were trained.
    const Rope yarn = with_member("rope_scaling", R"({"rope_type":"yarn","factor":4.0,
                                      "original_max_position_embeddings":32})")
                          .rope;
    EXPECT_NEAR(yarn.attention, 0.1 * std::log(4.0) + 1, 1e-12);
    EXPECT_EQ(with_member("rope_scaling", R"({"rope_type":"yarn","attention_factor":1.5,
                              "original_max_position_embeddings":32})")
                  .rope.attention,
              1.5);
    EXPECT_EQ(with_member("rope_scaling", R"({"type":"dynamic","factor":2.0})").rope.scaling,
              Rope::Scaling::none);
}

TEST(Config, RefusesScalingThatItDoesNotKnow) {
    for (const char* name : {"rope_scaling", "rope_parameters"})
        for (const char* scaled :
             {R"({"type":"linear"})", R"({"type":"linear","factor":0.5})",
              R"({"rope_type":"default","factor":2.0})", R"({"rope_type":"longrope","factor":2.0})",
              R"({"rope_type":"yarn","beta_fast":1,"beta_slow":2})",
              R"({"rope_type":"llama3","factor":8.0})",
              R"({"rope_type":"yarn","original_max_position_embeddings":0})",
              R"({"full_attention":{"rope_theta":1e6}})", "[]", "true"}) {
            const std::string message = error_of([&] { with_member(name, scaled); });
            EXPECT_NE(message.find(std::string("'") + name + "'"), std::string::npos) << message;
        }
}

TEST(Config, TakesTheSameScalingTwice) {
    const char* yarn = R"({"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32})";
    const char* same = R"({"type":"yarn","factor":4,"original_max_position_embeddings":32,
                           "beta_fast":32.0,"rope_theta":10000.0})";
    const auto both = [](const char* scaling, const char* parameters) {
        return parse_model_config(
            config_with({{"rope_scaling", scaling}, {"rope_parameters", parameters}}, "llama"),
            "config.json");
    };
    EXPECT_EQ(both(yarn, same).rope, with_member("rope_scaling", yarn).rope);
    EXPECT_EQ(both(yarn, R"({"rope_theta":10000.0})").rope, with_member("rope_scaling", yarn).rope);
    EXPECT_EQ(both("{}", yarn).rope, with_member("rope_scaling", yarn).rope);
    EXPECT_EQ(both("null", yarn).rope, with_member("rope_scaling", yarn).rope);
    for (const char* other :
         {R"({"type":"yarn","factor":2,"original_max_position_embeddings":32})",
          R"({"type":"linear","factor":4})", R"({"rope_type":"default"})",
          R"({"type":"yarn","factor":4,"original_max_position_embeddings":32,"beta_slow":2})"})
        for (const bool first : {true, false}) {
            const std::string message =
                error_of([&] { first ? both(other, yarn) : both(yarn, other); });
            EXPECT_NE(message.find("says another scaling than 'rope_scaling'"), message.npos)
                << other << message;
        }
}

TEST(Config, RefusesRotationOfAPartOfEachHead) {
    const std::string share = "\"partial_rotary_factor\": ";
    const auto says = [](const std::string& message) {
        return message.find("rotation of a part of each head") != message.npos;
    };
    for (const char* key : {"partial_rotary_factor", "rotary_pct", "rotary_percent"}) {
        EXPECT_TRUE(says(error_of([&] { with_member(key, "0.5"); }))) << key;
        EXPECT_TRUE(says(error_of([&] { with_member(key, "0.5", "qwen3"); }))) << key;
        EXPECT_EQ(error_of([&] { with_member(key, "1.0"); }), "") << key;
        EXPECT_EQ(error_of([&] { with_member(key, "1"); }), "") << key;
        EXPECT_EQ(error_of([&] { with_member(key, "null"); }), "") << key;
        EXPECT_NE(error_of([&] { with_member(key, "\"0.5\""); }), "") << key;
        const auto head = [&](const char* value) {
            parse_layer_config(Fields(config_with({{key, value}}, "llama"), "config.json"));
        };
        EXPECT_TRUE(says(error_of([&] { head("0.25"); }))) << key;
        EXPECT_EQ(error_of([&] { head("1.0"); }), "") << key;
    }
    for (const char* outer : {"rope_scaling", "rope_parameters"})
        for (const char* type : {"default", "linear"}) {
            const std::string factor = type == std::string("linear") ? ", \"factor\": 2.0" : "";
            const auto with = [&](const char* value) {
                const std::string object = "{\"rope_type\": \"" + std::string(type) + "\", " +
                                           share + value + factor + "}";
                with_member(outer, object.c_str());
            };
            EXPECT_TRUE(says(error_of([&] { with("0.5"); }))) << outer;
            EXPECT_EQ(error_of([&] { with("1.0"); }), "") << outer;
        }
}

// Some files give a value that all layers share as a list with one entry per layer.
TEST(Config, ReadsUniformLists) {
    const auto layers = [](const char* key, const char* list) {
        return parse_model_config(config_with({{key, list}}, "llama", 3), "config.json");
    };
    EXPECT_EQ(layers("num_key_value_heads", "[2,2,2]").attention.kv_heads, 2);
    EXPECT_EQ(layers("num_attention_heads", "[2,2,2]").attention.heads, 2);
    EXPECT_EQ(layers("intermediate_size", "[48,48,48]").intermediate, 48);
    for (const char* key : {"num_key_value_heads", "num_attention_heads", "intermediate_size"})
        for (const char* list : {"[2,2,1]", "[2,2]", "[]", "[2,2,2,2]", "[2,2,\"2\"]", "[0,0,0]",
                                 "[2,[2],2]", "[1e300,2,2]"}) {
            const std::string message = error_of([&] { layers(key, list); });
            EXPECT_NE(message.find(std::string("'") + key + "'"), message.npos) << message;
        }
    EXPECT_NE(error_of([&] { layers("intermediate_size", "[2,2,1]"); }).find("for all layers"),
              std::string::npos);
}

TEST(Config, PadsHeadsOfOtherSizes) {
    for (const int size : {2, 8, 16, 24, 100}) {
        const ModelConfig config = with_member("head_dim", std::to_string(size).c_str());
        EXPECT_EQ(config.size_of_head(), size);
        EXPECT_EQ(config.attention.head_dim, (size + 15) / 16 * 16);
        EXPECT_EQ(config.file_head_dim > 0, size % 16 != 0);
    }
    for (const char* size : {"0", "1", "25", "1025", "-24"})
        EXPECT_NE(error_of([&] { with_member("head_dim", size); }), "") << size;
}

TEST(Config, SaysThatAContextIsAssumed) {
    EXPECT_FALSE(with_member("head_dim", "16").context_is_assumed);
    const ModelConfig config = with_member("max_position_embeddings", "null");
    EXPECT_TRUE(config.context_is_assumed);
    EXPECT_EQ(config.context, 2048);
}

// The windows of a model with four layers.
std::vector<int> windows_of(const std::string& type, const Members& members) {
    return parse_model_config(config_with(members, type, 4), "config.json").windows;
}

using Lengths = std::vector<int>;

TEST(Config, ReadsWindowsAsEachArchitectureHasThem) {
    const std::pair<const char*, const char*> window = {"sliding_window", "24"};
    EXPECT_EQ(windows_of("mistral", {window}), Lengths({24, 24, 24, 24}));
    EXPECT_EQ(windows_of("mistral", {{"sliding_window", "null"}}), Lengths());
    EXPECT_EQ(windows_of("mistral", {}), Lengths({4096, 4096, 4096, 4096}));
    EXPECT_EQ(windows_of("llama", {window}), Lengths());
    for (const char* qwen : {"qwen2", "qwen3"}) {
        EXPECT_EQ(windows_of(qwen, {window}), Lengths());
        EXPECT_EQ(windows_of(qwen, {window, {"use_sliding_window", "false"}}), Lengths());
        EXPECT_EQ(windows_of(qwen, {window, {"use_sliding_window", "true"}}), Lengths());
        EXPECT_EQ(
            windows_of(qwen, {window, {"use_sliding_window", "true"}, {"max_window_layers", "3"}}),
            Lengths({0, 0, 0, 24}));
        EXPECT_EQ(windows_of(qwen, {{"use_sliding_window", "true"}, {"max_window_layers", "0"}}),
                  Lengths({4096, 4096, 4096, 4096}));
    }
}

TEST(Config, ReadsWindowsByLayer) {
    const std::pair<const char*, const char*> window = {"sliding_window", "24"},
                                              mixed = {"layer_types",
                                                       R"(["sliding_attention","full_attention",
                                                       "sliding_attention","full_attention"])"},
                                              full = {"layer_types",
                                                      R"(["full_attention","full_attention",
                                                      "full_attention","full_attention"])"},
                                              used = {"use_sliding_window", "true"};
    EXPECT_EQ(windows_of("mistral", {window, mixed}), Lengths({24, 0, 24, 0}));
    EXPECT_EQ(windows_of("qwen3", {window, used, mixed, {"max_window_layers", "2"}}),
              Lengths({24, 0, 24, 0}));
    for (const char* type : {"mistral", "qwen2", "llama"})
        EXPECT_EQ(windows_of(type, {window, full}), Lengths()) << type;
    for (const char* type : {"qwen2", "llama"})
        EXPECT_NE(error_of([&] {
                      windows_of(type, {window, mixed});
                  }).find("'sliding_window'"),
                  std::string::npos)
            << type;
}

// A head has windows only if its own file says so.
TEST(Config, ReadsWindowsAndBiasesOfHeads) {
    const auto head = [](const char* name, const char* value) {
        return parse_layer_config(Fields(config_with({{name, value}}, "mistral"), "config.json"));
    };
    EXPECT_EQ(head("use_cache", "true").windows, Lengths());
    EXPECT_EQ(head("sliding_window", "null").windows, Lengths());
    EXPECT_EQ(head("sliding_window", "24").windows, Lengths({24}));
    EXPECT_TRUE(head("qkv_bias", "true").qkv_bias);
    EXPECT_FALSE(head("qkv_bias", "true").attention_output_bias);
    EXPECT_TRUE(head("attention_bias", "true").attention_output_bias);
    EXPECT_FALSE(head("qkv_bias", "false").qkv_bias);
}

TEST(Config, ReadsBiases) {
    const ModelConfig none = with_member("attention_bias", "false");
    EXPECT_FALSE(none.qkv_bias || none.attention_output_bias || none.mlp_bias);
    for (const char* type : {"llama", "qwen3"}) {
        const ModelConfig attention = with_member("attention_bias", "true", type);
        EXPECT_TRUE(attention.qkv_bias && attention.attention_output_bias) << type;
        EXPECT_FALSE(attention.mlp_bias) << type;
    }
    // Qwen 2 always has biases, but none of the attention output.
    const ModelConfig qwen2 = with_member("attention_bias", "true", "qwen2");
    EXPECT_TRUE(qwen2.qkv_bias && !qwen2.attention_output_bias);
    const ModelConfig mlp = with_member("mlp_bias", "true");
    EXPECT_TRUE(mlp.mlp_bias && !mlp.qkv_bias && !mlp.attention_output_bias);
}

// A small model with experts; `members` replace its own, or remove them if they are null.
ModelConfig with_experts(const std::string& type, const Json::Object& members = {}) {
    ModelConfig shape;
    shape.hidden = 32;
    shape.intermediate = 64;
    shape.layers = 4;
    shape.vocab = 64;
    shape.context = 128;
    shape.attention = {2, 1, 16};
    std::string text = test::config_json(shape);
    text.replace(text.find("llama"), 5, type);
    Json json = Json::parse(text, "config");
    const auto add = [&](const char* name, const Json& value) {
        for (const auto& [given, other] : members)
            if (given == name) return;
        json.set(name, value);
    };
    add(type == "mixtral" ? "num_local_experts" : "num_experts", 8);
    add("num_experts_per_tok", 2);
    if (type != "mixtral") add("moe_intermediate_size", 48);
    for (const auto& [name, value] : members) json.set(name, value);
    return parse_model_config(json, "config.json");
}

std::vector<int> layers_with_experts(const ModelConfig& config) {
    std::vector<int> layers;
    for (int i = 0; i < config.layers; ++i)
        if (config.experts.in_layer(i)) layers.push_back(i);
    return layers;
}

TEST(Config, ReadsExperts) {
    const ModelConfig mixtral = with_experts("mixtral");
    EXPECT_EQ(mixtral.experts.count, 8);
    EXPECT_EQ(mixtral.experts.chosen, 2);
    EXPECT_EQ(mixtral.experts.intermediate, 64);
    EXPECT_TRUE(mixtral.experts.normalised);
    EXPECT_EQ(layers_with_experts(mixtral), (std::vector<int>{0, 1, 2, 3}));
    EXPECT_EQ(pass_limits(mixtral, 10, 20).places, 20);
    const ModelConfig qwen = with_experts("qwen3_moe");
    EXPECT_EQ(qwen.experts.intermediate, 48);
    EXPECT_FALSE(qwen.experts.normalised);
    EXPECT_TRUE(qwen.qk_norm);
    EXPECT_TRUE(with_experts("qwen3_moe", {{"norm_topk_prob", true}}).experts.normalised);
}

TEST(Config, ReadsWhichLayersHaveExperts) {
    const auto layers = [](const Json::Object& members) {
        return layers_with_experts(with_experts("qwen3_moe", members));
    };
    EXPECT_EQ(layers({}), (std::vector<int>{0, 1, 2, 3}));
    EXPECT_EQ(layers({{"decoder_sparse_step", 2}}), (std::vector<int>{1, 3}));
    EXPECT_EQ(layers({{"mlp_only_layers", Json::Array{3, 0}}}), (std::vector<int>{1, 2}));
    EXPECT_EQ(layers({{"decoder_sparse_step", 2}, {"mlp_only_layers", Json::Array{1, 2}}}),
              (std::vector<int>{3}));
    EXPECT_EQ(layers({{"decoder_sparse_step", 9}}), (std::vector<int>{}));
}

TEST(Config, RefusesExpertsThatContradict) {
    const auto says = [](const std::string& type, const Json::Object& members, const char* what) {
        const std::string error = error_of([&] { with_experts(type, members); });
        EXPECT_NE(error.find("config.json: "), std::string::npos) << what << ": " << error;
        EXPECT_NE(error.find(what), std::string::npos) << error;
        EXPECT_EQ(error.find('\n'), std::string::npos);
    };
    says("mixtral", {{"num_local_experts", Json()}}, "'num_local_experts' is missing");
    says("mixtral", {{"num_local_experts", 1025}}, "'num_local_experts' must be");
    says("mixtral", {{"num_local_experts", 0}}, "'num_local_experts' must be");
    says("mixtral", {{"num_experts_per_tok", 9}}, "more than the 8 of 'num_local_experts'");
    says("mixtral", {{"num_experts_per_tok", 0}}, "'num_experts_per_tok' must be");
    says("qwen3_moe", {{"num_experts", Json()}}, "'num_experts' is missing");
    says("qwen3_moe", {{"num_experts", 128}, {"num_experts_per_tok", 33}}, "at most 32");
    says("qwen3_moe", {{"moe_intermediate_size", Json()}}, "'moe_intermediate_size' is missing");
    says("qwen3_moe", {{"decoder_sparse_step", 0}}, "'decoder_sparse_step'");
    says("qwen3_moe", {{"norm_topk_prob", 1}}, "'norm_topk_prob'");
    for (const Json& layers : {Json(4), Json(Json::Array{4}), Json(Json::Array{-1}),
                               Json(Json::Array{"0"}), Json(Json::Array{0, 0, 0, 0, 0})})
        says("qwen3_moe", {{"mlp_only_layers", layers}}, "'mlp_only_layers' must be a list");
}

}  // namespace
}  // namespace aerie
