// Runs the program on each bad case and checks that it refuses the input in one line.
#include "tools/bad_case.h"
#include "paths.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "io/input_file.h"
#include "model/toy_model.h"

namespace aerie::test {

namespace fs = std::filesystem;

namespace {

#ifdef AERIE_PROGRAM_IS_SANITIZED
constexpr double kMaxSeconds = 20;
constexpr size_t kMaxBytes = size_t(4) << 30;
#else
constexpr double kMaxSeconds = 2;
constexpr size_t kMaxBytes = size_t(256) << 20;
#endif

// The good models are written once and copied for each case.
const fs::path& good_models() {
    static const struct Models {
        fs::path path = fs::temp_directory_path() / ("aerie_good_" + std::to_string(::getpid()));
        Models() {
            ModelConfig config;
            config.hidden = 32;
            config.intermediate = 48;
            config.layers = 1;
            config.vocab = 4096;
            config.context = 2048;
            config.attention = {2, 1, 16};
            write_toy_model(path / "target", config, DType::F16, 0.1f, 1);
            for (const char* name :
                 {"tokenizer.model", "tokenizer_config.json", "generation_config.json"})
                fs::copy_file(models_dir() / "aerie-tiny" / name, path / "target" / name);
        }
        ~Models() { fs::remove_all(path); }
    } models;
    return models.path;
}

std::set<fs::path> files_below(const fs::path& folder) {
    std::set<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) files.insert(entry.path());
    return files;
}

void check_refusal(const Outcome& outcome, const BadCase& bad) {
    EXPECT_EQ(outcome.signal, 0);
    EXPECT_EQ(outcome.exit_code, bad.exit_code);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("aerie: ") && outcome.err.ends_with("\n")) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    for (const std::string& text : bad.says)
        EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err << "lacks: " << text;
    EXPECT_LT(outcome.cpu_seconds, kMaxSeconds);
    EXPECT_LT(outcome.peak_bytes, kMaxBytes);
}

}  // namespace

ModelPair::ModelPair() {
    fs::copy(good_models(), folder(), fs::copy_options::recursive);
}

std::string ModelPair::read(const std::string& file) const {
    return read_text(folder() / file, size_t(64) << 20);
}

void ModelPair::write(const std::string& file, const std::string& bytes) const {
    folder_.write(file, bytes);
}

void ModelPair::remove(const std::string& file) const {
    fs::remove_all(folder() / file);
}

void ModelPair::truncate(const std::string& file, size_t bytes) const {
    fs::resize_file(folder() / file, bytes);
}

void ModelPair::set(const std::string& file, const std::string& key,
                    const std::string& json) const {
    const Json config = Json::parse(read(file), file);
    std::string members = json.empty() ? "" : ",\"" + key + "\":" + json;
    for (const auto& [name, value] : *config.object())
        if (name != key) members += ",\"" + name + "\":" + value.dump();
    write(file, "{" + members.substr(1) + "}");
}

void ModelPair::write_weights(const std::string& file, const std::string& bytes) const {
    remove((fs::path(file).parent_path() / "model.safetensors").string());
    write(file, bytes);
}

TEST_P(BadInput, IsRefusedInOneLine) {
    const BadCase& bad = GetParam();
    const ModelPair models;
    if (bad.damage) bad.damage(models);
    std::vector<std::string> command = bad.command;
    command.insert(command.end(), bad.flags.begin(), bad.flags.end());
    const auto before = files_below(models.folder());
    std::function<void()> before_start;
#ifndef AERIE_PROGRAM_IS_SANITIZED
    if (bad.most_bytes > 0)
        before_start = [&] {
            const rlimit limit{bad.most_bytes, bad.most_bytes};
            ::setrlimit(RLIMIT_DATA, &limit);
        };
#endif
    check_refusal(run(command, {models.folder(), bad.input, bad.variables, before_start}), bad);
    EXPECT_EQ(files_below(models.folder()), before) << "something was written";
}

TEST(GoodModels, OfTheBadCasesRun) {
    const ModelPair models;
    const Outcome good = run({"generate", "-m", "target", "-p", "x", "-n", "4", "-q"},
                             {models.folder(), {}, {}, {}});
    EXPECT_EQ(good.exit_code, 0) << good.err;
    EXPECT_EQ(good.err, "");
}

}  // namespace aerie::test
