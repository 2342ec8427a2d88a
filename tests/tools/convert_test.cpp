// `aerie convert` writes a GGUF file that gives the same texts as its model, or no file at all.
#include <filesystem>

#include "io/damage.h"
#include "paths.h"
#include "tools/generated.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

class Convert : public testing::Test {
  protected:
    Outcome convert(const std::vector<std::string>& flags) const {
        return run(with({"convert", "-o", "out.gguf"}, flags), here_);
    }
    // Ids and text that a model generates, greedy and sampled.
    std::string said(const std::string& model, const std::vector<std::string>& flags) const {
        std::string all;
        for (const char* temperature : {"0", "0.8"}) {
            const Json one =
                generated(with({"-m", model, "--draft", "none", "-p", "The river <s> 7 äöü", "-n",
                                "40", "--seed", "5", "--ignore-eos", "--temp", temperature},
                               flags),
                          here_);
            all += field(one, "ids") + field(one, "text") + "\n";
        }
        return all;
    }
    std::string real(const char* name) const { return (test_data_dir() / "real" / name).string(); }
    size_t entries() const {
        fs::directory_iterator all(folder_.path());
        return size_t(std::distance(begin(all), end(all)));
    }
    void remove() const { fs::remove(folder_.path() / "out.gguf"); }

    TestFolder folder_;
    Surroundings here_{.folder = folder_.path()};
};

TEST_F(Convert, PacksAsLoadingDoes) {
    for (const char* type : {"f16", "bf16", "q8_0", "q4_0", "q4_k", "q5_k", "q6_k"}) {
        EXPECT_EQ(convert({"--weights", type}).exit_code, 0);
        EXPECT_EQ(said("out.gguf", {}), said("aerie-tiny", {"--weights", type})) << type;
        remove();
    }
}

TEST_F(Convert, OfAGgufFileIsItsCopy) {
    EXPECT_EQ(convert({}).exit_code, 0);
    fs::rename(folder_.path() / "out.gguf", folder_.path() / "aerie-tiny.gguf");
    EXPECT_EQ(convert({"aerie-tiny.gguf"}).exit_code, 0);
    EXPECT_EQ(said("out.gguf", {}), said("aerie-tiny.gguf", {}));
    EXPECT_EQ(fs::file_size(folder_.path() / "out.gguf"),
              fs::file_size(folder_.path() / "aerie-tiny.gguf"));
}

TEST_F(Convert, SaysWhatOthersDoNotRead) {
    const auto warns = [&](const char* name, const char* of) {
        const Outcome made = convert({real(name), "-q"});
        EXPECT_EQ(made.exit_code, 0) << made.err;
        EXPECT_EQ(made.out, "");
        EXPECT_EQ(std::count(made.err.begin(), made.err.end(), '\n'), *of ? 2 : 1) << made.err;
        EXPECT_NE(made.err.find("no tokenizer"), std::string::npos) << made.err;
        EXPECT_NE(made.err.find(of), std::string::npos) << made.err;
        remove();
    };
    warns("mistral-window", "sliding windows");
    warns("qwen3-moe", "mlp_only_layers");
    warns("llama3", "");
    warns("qwen2", "");
}

TEST_F(Convert, RefusesInOneLineAndLeavesNothing) {
    const auto refuses = [&](const std::vector<std::string>& flags, const char* why) {
        const Outcome outcome = run(with({"convert"}, flags), here_);
        EXPECT_NE(outcome.exit_code, 0);
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
        EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
    };
    refuses({"-o", "out.bin"}, "must end in .gguf");
    refuses({"-o", "absent/out.gguf"}, "absent/out.gguf");
    refuses({"absent", "-o", "out.gguf"}, "absent");
    refuses({real("llama-yarn"), "-o", "out.gguf", "--weights", "q8_0"}, "needs a multiple of 32");
    EXPECT_EQ(entries(), 0u);
    folder_.write("out.gguf", "mine");
    refuses({"-o", "out.gguf"}, "exists already");
    EXPECT_EQ(fs::file_size(folder_.path() / "out.gguf"), 4u);
    EXPECT_EQ(entries(), 1u);
}

}  // namespace
}  // namespace aerie::test
