// Model configurations: what is read from them beyond what the hostile ones are refused for.
#include "model/config.h"

#include "io/damage.h"
#include "model/toy_model.h"

namespace aerie {
namespace {

using test::error_of;

ModelConfig with_member(const char* name, const char* value) {
    ModelConfig shape;
    shape.hidden = 32;
    shape.intermediate = 64;
    shape.layers = 1;
    shape.vocab = 64;
    shape.context = 128;
    shape.attention = {2, 1, 16};
    Json json = Json::parse(test::config_json(shape), "config");
    json.set(name, Json::parse(value, name));
    return parse_model_config(json, "config.json");
}

TEST(Config, ReadsTheAngleBaseOfEveryRelease) {
    EXPECT_EQ(with_member("rope_theta", "500000.0").rope_theta, 500000);
    EXPECT_EQ(with_member("rope_parameters", R"({"rope_type":"default","rope_theta":500000.0})")
                  .rope_theta,
              500000);
    EXPECT_EQ(with_member("rope_parameters", R"({"rope_type":"default"})").rope_theta, 10000);
    EXPECT_EQ(with_member("rope_parameters", "null").rope_theta, 10000);
}

TEST(Config, TakesScalingThatDoesNotScale) {
    for (const char* none : {"null", "{}", R"({"type":"default"})", R"({"rope_type":"default"})"})
        EXPECT_EQ(with_member("rope_scaling", none).rope_theta, 10000) << none;
}

TEST(Config, RefusesScaledRope) {
    for (const char* name : {"rope_scaling", "rope_parameters"})
        for (const char* scaled :
             {R"({"type":"linear","factor":2.0})", R"({"rope_type":"default","factor":2.0})",
              R"({"rope_type":"yarn"})", R"({"full_attention":{"rope_theta":1e6}})", "[]",
              "true"}) {
            const std::string message = error_of([&] { with_member(name, scaled); });
            EXPECT_NE(message.find(std::string("'") + name + "'"), std::string::npos) << message;
        }
}

}  // namespace
}  // namespace aerie
