// Memory that `aerie info` predicts against memory that `aerie generate` takes, on a model of 300
// MB.
#include <sys/resource.h>

#include "io/damage.h"
#include "model/toy_model.h"
#include "paths.h"
#include "tools/generated.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMiB = size_t(1) << 20;

// A random target of 14 layers with its head, F16, written once.
const std::string& large_model() {
    static const struct Model {
        fs::path folder =
            fs::temp_directory_path() / ("aerie_memory_" + std::to_string(::getpid()));
        std::string target = (folder / "target").string();
        Model() {
            ModelConfig config;
            config.hidden = 1024;
            config.intermediate = 4096;
            config.layers = 14;
            config.vocab = 4096;
            config.context = 2048;
            config.attention = {16, 16, 64};
            write_toy_model(target, config, DType::F16, 0.02f, 1);
            for (const char* name : {"tokenizer.model", "tokenizer_config.json"})
                fs::copy_file(models_dir() / "aerie-tiny" / name, fs::path(target) / name);
        }
        ~Model() { fs::remove_all(folder); }
    } model;
    return model.target;
}

// Words that fill a context of 256, except for some positions.
std::string long_prompt() {
    std::string prompt;
    for (int i = 0; i < 110; ++i) prompt += "the of ";
    return prompt;
}

struct Case {
    const char* name;
    std::vector<std::string> flags;
};
void PrintTo(const Case& one, std::ostream* out) {
    *out << one.name;
}

class Memory : public testing::Test {
  protected:
    void SetUp() override {
#ifdef AERIE_PROGRAM_IS_SANITIZED
        GTEST_SKIP() << "a sanitizer takes memory of its own";
#endif
    }
};

class Prediction : public Memory, public testing::WithParamInterface<Case> {};

TEST_P(Prediction, IsWithinATenthOfTheTruth) {
    const auto flags = with({"-m", large_model(), "-c", "256"}, GetParam().flags);
    const Json info = Json::parse(run(with({"info", "--json"}, flags)).out, "stdout");
    const double predicted = info.find("memory_bytes")->find("total")->number();
    const Outcome outcome = run(
        with({"generate", "-q", "--json", "-n", "8", "--temp", "1", "-p", long_prompt()}, flags));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    std::printf("%-12s predicted %.1f MiB, peak %.1f MiB (%+.1f %%)\n", GetParam().name,
                predicted / kMiB, double(outcome.peak_bytes) / kMiB,
                100 * (double(outcome.peak_bytes) / predicted - 1));
    EXPECT_LT(double(outcome.peak_bytes), 1.1 * predicted);
    EXPECT_GT(double(outcome.peak_bytes), 0.9 * predicted);
}

INSTANTIATE_TEST_SUITE_P(
    Large, Prediction,
    testing::Values(Case{"eagle2", {}}, Case{"none", {"--draft", "none"}},
                    Case{"kv_f32", {"--kv", "f32"}},
                    Case{"as_f32", {"--weights", "f32", "--draft-weights", "f32"}},
                    Case{"as_bf16", {"--weights", "bf16", "--draft", "none"}},
                    Case{"as_q8_0", {"--weights", "q8_0"}}, Case{"as_q4_0", {"--weights", "q4_0"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(Memory, IsEnoughForQuantisedWeightsWhereStoredOnesDoNotFit) {
    const Surroundings little{.before = [] {
        const rlimit limit{250 * kMiB, 250 * kMiB};  // less than the stored weights take
        ::setrlimit(RLIMIT_DATA, &limit);
    }};
    const std::vector<std::string> flags = {"-m", large_model(), "-c", "64", "-p", "x", "-n", "2"};
    ASSERT_GT(fs::file_size(large_model() + "/model.safetensors"), 300 * kMiB);
    generated(with({"--weights", "q4_0"}, flags), little);
    const Outcome stored = run(with({"generate"}, flags), little);
    EXPECT_EQ(stored.exit_code, 1) << "the limit does not work";
    EXPECT_NE(stored.err.find("out of memory"), std::string::npos) << stored.err;
}

TEST_F(Memory, OfInfoIsSmall) {
    const Outcome outcome = run({"info", large_model()});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_LT(outcome.peak_bytes, 64 * kMiB) << "nothing is loaded";
}

}  // namespace
}  // namespace aerie::test
