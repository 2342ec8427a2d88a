// Model configurations: what is read from them beyond what the hostile ones are refused for.
#include "model/config.h"

#include <cmath>

#include "io/damage.h"
#include "model/toy_model.h"

namespace aerie {
namespace {

using test::error_of;

// One more member in the configuration of a small model of this type.
ModelConfig with_member(const char* name, const char* value, const std::string& type = "llama") {
    ModelConfig shape;
    shape.hidden = 32;
    shape.intermediate = 64;
    shape.layers = 1;
    shape.vocab = 64;
    shape.context = 128;
    shape.attention = {2, 1, 16};
    std::string text = test::config_json(shape);
    text.replace(text.find("llama"), 5, type);
    Json json = Json::parse(text, "config");
    json.set(name, Json::parse(value, name));
    return parse_model_config(json, "config.json");
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
    // Of 128 positions, 32 of them trained.
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

// A small model of experts; members in place of its own, or null where one is to be missing.
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

TEST(Config, RefusesWindowsThatHideAnything) {
    EXPECT_EQ(with_member("sliding_window", "128", "mistral").architecture, "mistral");
    EXPECT_NO_THROW(with_member("sliding_window", "null", "mistral"));
    EXPECT_NO_THROW(with_member("use_sliding_window", "false", "qwen2"));
    const std::string message = error_of([] { with_member("sliding_window", "24", "mistral"); });
    EXPECT_NE(message.find("'sliding_window'"), std::string::npos) << message;
}

}  // namespace
}  // namespace aerie
