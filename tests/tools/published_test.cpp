// Random copies of published models and heads (tests/data/published.json) through the program: what
// it reports about them, some tokens, the time and the memory that they take. With
// AERIE_TRUE_SHAPES only the number of layers is reduced, otherwise hidden sizes are, too.
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "core/error.h"
#include "io/input_file.h"
#include "paths.h"
#include "tools/generated.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

constexpr double kMB = 1e6;
constexpr size_t kLayers = 2;

const Json& table() {
    static const Json json = Json::parse(
        read_text(test_data_dir() / "published.json", size_t(1) << 20), "published.json");
    return json;
}

bool true_shapes() {
    return std::getenv("AERIE_TRUE_SHAPES") != nullptr;
}

int64_t number(const Json& json, const char* key, int64_t fallback = 0) {
    int64_t value = fallback;
    if (const Json* found = json.find(key); found && !found->is_null()) found->integer(value);
    return value;
}

std::string text(const Json& json, const char* key) {
    const Json* found = json.find(key);
    return found && found->string() ? *found->string() : "";
}

// The sizes in a row's configuration; those of speculators lie one level deeper.
Json sizes_of(const Json& row) {
    const Json& config = *row.find("config");
    const Json* layer = config.find("transformer_layer_config");
    return layer ? *layer : config;
}

// The divisor of sizes: an attention head can be cut to 16 elements at least.
int cut_of(const Json& config) {
    const int64_t heads = number(config, "num_attention_heads");
    const int64_t size = number(config, "head_dim", number(config, "hidden_size") / heads);
    return true_shapes() ? 1 : int(size / 16);
}

// The head's target, or one with the head's own sizes if the table lacks it.
Json target_of(const Json& head) {
    const std::string name = text(head, "target");
    for (const Json& row : *table().find("targets")->array())
        if (text(row, "name") == name) return row;
    Json row = Json::Object{{"name", text(head, "name") + " (target)"},
                            {"layout", "llama"},
                            {"dtype", "f16"},
                            {"tokenizer", "sentencepiece"}};
    Json::Object config = *head.find("config")->object();
    std::erase_if(config, [](const auto& field) { return field.first == "model_type"; });
    config.emplace_back("model_type", "llama");
    Json sized(std::move(config));
    if (const Json* sizes = head.find("target_sizes"))
        for (const auto& [key, value] : *sizes->object()) sized.set(key, value);
    row.set("config", std::move(sized));
    return row;
}

// Copies in a folder that is removed at the end; the program that makes them reports their
// contents.
class Copies {
  public:
    Copies() { fs::create_directories(folder_); }
    ~Copies() { fs::remove_all(folder_); }

    // Writes a target or head of the table, or a target made from another row.
    Json write(const Json& row, const std::string& as, const std::string& format) const {
        Json only = Json::Object{{"layouts", *table().find("layouts")},
                                 {"tokenizers", *table().find("tokenizers")},
                                 {format == "head" ? "heads" : "targets", Json::Array{row}}};
        const fs::path file = folder_ / "row.json", said = folder_ / "said.json";
        write_text(file, only.dump());
        const std::string command =
            "'" + std::string(AERIE_PYTHON) + "' '" +
            (repository_dir() / "tests/published/write_model.py").string() + "' '" + file.string() +
            "' '" + text(row, "name") + "' '" + path(as) + "' " + format + " --cut " +
            std::to_string(cut_of(sizes_of(row))) + " > '" + said.string() + "'";
        if (std::system(command.c_str()) != 0) throw Error("failed: " + command);
        return Json::parse(read_text(said, 4096), "write_model.py");
    }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }

  private:
    static void write_text(const fs::path& file, const std::string& text) {
        std::ofstream out(file, std::ios::binary);
        out << text;
        if (!out.flush()) throw Error(file.string() + ": could not be written");
    }

    fs::path folder_ =
        fs::temp_directory_path() / ("aerie_published_" + std::to_string(::getpid()));
};

const std::vector<std::string> kContext = {"-c", "128"};
// `best` reserves logits for its largest tree, and touches them only where such trees are fast.
const std::vector<std::string> kPlain = {"-c", "128", "--draft", "none"};

// The error if the program does not know the architecture; empty if it does.
std::string unknown_architecture(const std::string& model) {
    const Outcome outcome = run({"info", "--json", "-m", model});
    return outcome.exit_code != 0 && outcome.err.find("; implemented are ") != std::string::npos
               ? outcome.err
               : "";
}

void expect_sizes(const Json& said, const Json& row, const Json& made, int64_t layers) {
    const Json config = sizes_of(row);
    const int cut = cut_of(config);
    const int64_t heads = number(config, "num_attention_heads"),
                  hidden = number(config, "hidden_size") / cut;
    EXPECT_EQ(number(said, "layers"), layers);
    EXPECT_EQ(number(said, "hidden"), hidden);
    EXPECT_EQ(number(said, "intermediate"), number(config, "intermediate_size") / cut);
    EXPECT_EQ(number(said, "heads"), heads);
    EXPECT_EQ(number(said, "kv_heads"), number(config, "num_key_value_heads", heads));
    EXPECT_EQ(number(said, "head_dim"),
              config.find("head_dim") ? number(config, "head_dim") / cut : hidden / heads);
    EXPECT_EQ(number(said, "vocabulary"), number(config, "vocab_size"));
    EXPECT_EQ(number(said, "parameters"), number(made, "parameters"));
    int64_t bytes = 0;
    for (const auto& [type, of_type] : *said.find("file_bytes")->object())
        bytes += number(Json(Json::Object{{"", of_type}}), "");
    EXPECT_EQ(bytes, number(made, "bytes"));
}

// Expects tokens, and as much memory as predicted, within a tenth: the context is filled, so that
// all reserved memory is touched. Returns the tokens' ids.
Json expect_tokens(const std::vector<std::string>& flags, const Json& info,
                   const std::string& what) {
    constexpr int kPrompt = 100, kTokens = 20;
    const double predicted = info.find("memory_bytes")->find("total")->number();
    std::string prompt = "5";
    for (int id = 6; id < 5 + kPrompt; ++id) prompt += "," + std::to_string(id);
    const Outcome outcome = run(with({"generate", "--json", "-q", "-n", std::to_string(kTokens),
                                      "--ignore-eos", "--temp", "0", "--prompt-ids", prompt},
                                     flags));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    if (outcome.exit_code != 0) return {};
    const Json result = Json::parse(outcome.out, "stdout");
    if (!result.find("ids") || !result.find("ids")->array()) throw Error("no ids: " + outcome.out);
    EXPECT_EQ(result.find("ids")->array()->size(), size_t(kTokens));
    std::printf("%-48s predicted %7.1f MB, peak %7.1f MB (%+.1f %%), %.1f s of processor\n",
                what.c_str(), predicted / kMB, double(outcome.peak_bytes) / kMB,
                100 * (double(outcome.peak_bytes) / predicted - 1), outcome.cpu_seconds);
#ifndef AERIE_PROGRAM_IS_SANITIZED
    EXPECT_LT(double(outcome.peak_bytes), 1.1 * predicted) << what;
    EXPECT_GT(double(outcome.peak_bytes), 0.9 * predicted) << what;
#endif
    return *result.find("ids");
}

Json info_of(const std::vector<std::string>& flags) {
    const Outcome outcome = run(with({"info", "--json"}, flags));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.exit_code == 0 ? Json::parse(outcome.out, "stdout") : Json();
}

void expect_tokenizer(const std::string& model, const Json& row) {
    const Outcome outcome = run({"tokenize", "-m", model, "-p", "eat tea"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    std::printf("%-48s tokenizer: %.2f s of processor, %.1f MB\n", text(row, "name").c_str(),
                outcome.cpu_seconds, double(outcome.peak_bytes) / kMB);
#ifndef AERIE_PROGRAM_IS_SANITIZED
    EXPECT_LE(outcome.peak_bytes, 300 * kMB);
#endif
    const Json& kind = *table().find("tokenizers")->find(text(row, "tokenizer"));
    for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
        const fs::path file = fs::path(model) / name;
        const double bytes = double(number(kind, "bytes"));
        if (!fs::exists(file)) continue;
        EXPECT_NEAR(double(fs::file_size(file)), bytes, 0.1 * bytes);
    }
}

const Json& row_of(const char* list, const std::string& name) {
    for (const Json& row : *table().find(list)->array())
        if (text(row, "name") == name) return row;
    throw Error("no row " + name);
}

class Targets : public testing::TestWithParam<std::string> {};
class Heads : public testing::TestWithParam<std::string> {};

TEST_P(Targets, OfHuggingFaceRun) {
    const Json& row = row_of("targets", GetParam());
    const Copies copies;
    const Json made = copies.write(row, "model", "hf");
    const std::string model = copies.path("model");
    if (const std::string why = unknown_architecture(model); !why.empty()) GTEST_SKIP() << why;
    expect_tokenizer(model, row);
    const auto flags = with({"-m", model}, kPlain);
    const Json info = info_of(flags);
    ASSERT_FALSE(info.is_null());
    const Json& said = *info.find("target");
    EXPECT_EQ(text(said, "architecture"), text(*row.find("config"), "model_type"));
    expect_sizes(said, row, made, kLayers);
    expect_tokens(flags, info, text(row, "name"));
}

TEST_P(Targets, OfGgufRun) {
    const Json& row = row_of("targets", GetParam());
    if (!row.find("gguf")) GTEST_SKIP() << "no published GGUF file in the table";
    const Copies copies;
    const Json made = copies.write(row, "model.gguf", "gguf");
    const std::string model = copies.path("model.gguf");
    if (const std::string why = unknown_architecture(model); !why.empty()) GTEST_SKIP() << why;
    expect_tokenizer(model, row);
    const auto flags = with({"-m", model}, kPlain);
    const Json info = info_of(flags);
    ASSERT_FALSE(info.is_null());
    const std::string type = text(*row.find("config"), "model_type");
    // GGUF files do not distinguish the two.
    EXPECT_EQ(text(*info.find("target"), "architecture"), type == "mistral" ? "llama" : type);
    expect_sizes(*info.find("target"), row, made, kLayers);
    expect_tokens(flags, info, text(row, "name") + ".gguf");
}

TEST_P(Heads, DraftForTheirTargets) {
    const Json& row = row_of("heads", GetParam());
    const Json target = target_of(row);
    if (true_shapes() && text(row, "target").empty())
        GTEST_SKIP() << "too large for its target to be written";
    const Copies copies;
    const Json made_target = copies.write(target, "model", "hf");
    const Json made = copies.write(row, "model-eagle", "head");
    const std::string model = copies.path("model");
    if (const std::string why = unknown_architecture(model); !why.empty()) GTEST_SKIP() << why;
    const bool is_eagle3 = text(row, "layout").starts_with("eagle3");
    auto flags = with({"-m", model, "--draft", "eagle2", "--tree", "60,6,10"}, kContext);
    if (is_eagle3) flags = with(std::move(flags), {"--head-taps", "0,1,2"});
    const Json info = info_of(flags);
    ASSERT_FALSE(info.is_null());
    const Json& said = *info.find("head");
    EXPECT_EQ(text(said, "architecture"), is_eagle3 ? "eagle3" : "eagle");
    expect_sizes(said, row, made, 1);
    const Json drafted = expect_tokens(flags, info, text(row, "name"));
    if (!is_eagle3) return;
    const auto plain = with({"-m", model}, kPlain);
    EXPECT_EQ(drafted.dump(), expect_tokens(plain, info_of(plain), "its target alone").dump());
}

// The published sizes are millions of parameters, without the embedding.
TEST_P(Heads, HaveThePublishedNumberOfParameters) {
    const Json& row = row_of("heads", GetParam());
    if (!row.find("millions")) GTEST_SKIP() << "no number in the table";
    const Json& config = *row.find("config");
    const double hidden = double(number(config, "hidden_size")),
                 inner = double(number(config, "intermediate_size")),
                 heads = double(number(config, "num_attention_heads")),
                 kv = double(number(config, "num_key_value_heads", int64_t(heads)));
    const double parameters =
        2 * hidden * hidden + 2 * hidden * hidden * (1 + kv / heads) + 3 * hidden * inner;
    EXPECT_EQ(std::round(parameters / 1e7) * 10, double(number(row, "millions")));
}

std::vector<std::string> names(const char* list) {
    std::vector<std::string> names;
    for (const Json& row : *table().find(list)->array()) names.push_back(text(row, "name"));
    return names;
}

std::string short_name(const testing::TestParamInfo<std::string>& info) {
    std::string name = info.param.substr(info.param.find('/') + 1);
    for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return name;
}

INSTANTIATE_TEST_SUITE_P(Published, Targets, testing::ValuesIn(names("targets")), short_name);
INSTANTIATE_TEST_SUITE_P(Published, Heads, testing::ValuesIn(names("heads")), short_name);

}  // namespace
}  // namespace aerie::test
