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

TEST(Config, RefusesWindowsThatHideAnything) {
    EXPECT_EQ(with_member("sliding_window", "128", "mistral").architecture, "mistral");
    EXPECT_NO_THROW(with_member("sliding_window", "null", "mistral"));
    EXPECT_NO_THROW(with_member("use_sliding_window", "false", "qwen2"));
    const std::string message = error_of([] { with_member("sliding_window", "24", "mistral"); });
    EXPECT_NE(message.find("'sliding_window'"), std::string::npos) << message;
}

}  // namespace
}  // namespace aerie
