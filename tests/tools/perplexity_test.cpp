// `aerie perplexity` as a program: its two forms of output, and files that have nothing to score.
#include <cmath>
#include <cstring>

#include "io/damage.h"
#include "paths.h"
#include "tools/write_model.h"

namespace aerie::test {
namespace {

const std::string kText = "The cat sat on the mat.\n---8<---\nUSER: What is 3 times 14?";

TEST(PerplexityCommand, PrintsALineOrAnObject) {
    const TestFolder folder;
    const std::string file = folder.write("text.txt", kText);
    const Outcome plain = run({"perplexity", file});
    EXPECT_EQ(plain.exit_code, 0) << plain.err;
    EXPECT_EQ(plain.err, "");
    EXPECT_TRUE(plain.out.starts_with("perplexity ")) << plain.out;
    const Json json = Json::parse(run({"perplexity", file, "--json"}).out, "stdout");
    EXPECT_EQ(field(json, "schema"), "\"aerie-perplexity-1\"");
    EXPECT_EQ(field(json, "documents"), "2");
    EXPECT_EQ(field(json, "window"), "512");
    const double tokens = json.find("tokens")->number(), nll = json.find("nll")->number();
    EXPECT_GT(tokens, 10);
    EXPECT_GT(nll, tokens);
    EXPECT_NEAR(json.find("perplexity")->number(), std::exp(nll / tokens), 1e-9);
    const Json piped =
        Json::parse(run({"perplexity", "-", "--json"}, {.input = kText}).out, "stdout");
    EXPECT_EQ(field(piped, "nll"), field(json, "nll"));
    const Json narrow = Json::parse(run({"perplexity", file, "--json", "-c", "6"}).out, "stdout");
    EXPECT_LT(narrow.find("tokens")->number(), tokens);
}

TEST(PerplexityCommand, RefusesTextWithoutTokens) {
    const TestFolder folder;
    const Outcome empty = run({"perplexity", folder.write("empty.txt", "")});
    EXPECT_EQ(empty.exit_code, 2);
    EXPECT_NE(empty.err.find("empty.txt: the text has no token to score"), std::string::npos);
    EXPECT_EQ(run({"perplexity", folder.path() / "absent.txt"}).exit_code, 1);
    EXPECT_EQ(run({"perplexity"}).exit_code, 2);
}

// A norm overflows: its weights are finite, the logits are not.
TEST(PerplexityCommand, OfNoNumberIsAnError) {
    const TestFolder folder;
    const std::filesystem::path model = copy_without_weights("aerie-tiny", folder.path() / "model");
    std::vector<Stored> tensors = Stored::all_of(models_dir() / "aerie-tiny");
    for (Stored& tensor : tensors) {
        if (tensor.name != "model.norm.weight") continue;
        tensor = tensor.as(DType::F32);
        const float huge = 3e38f;
        for (size_t i = 0; i < tensor.data.size(); i += sizeof(huge))
            std::memcpy(&tensor.data[i], &huge, sizeof(huge));
    }
    write_file(model / "model.safetensors", safetensors_of(tensors));
    for (const char* form : {"-q", "--json"}) {
        const Outcome outcome = run({"perplexity", "-", "-m", model, form}, {.input = kText});
        EXPECT_EQ(outcome.exit_code, 1);
        EXPECT_EQ(outcome.out, "");
        EXPECT_NE(outcome.err.find("weights are damaged"), std::string::npos) << outcome.err;
    }
}

}  // namespace
}  // namespace aerie::test
