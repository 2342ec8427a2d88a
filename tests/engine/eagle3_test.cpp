// EAGLE-3 heads: the bundled one against its golden trees and tau, and in every published spelling.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "draft/heads/kinds.h"
#include "engine/checks.h"
#include "engine/first_trees.h"
#include "io/damage.h"
#include "io/gguf_head.h"
#include "tools/write_model.h"

namespace aerie::test {
namespace {

const std::filesystem::path kHead = models_dir() / "aerie-tiny-eagle3";

LoadOptions options_of(DType type, const std::filesystem::path& head = kHead) {
    LoadOptions options = bundled_options(type);
    options.head = head;
    options.draft.method = "eagle3";
    return options;
}

DraftOptions plain_tree() {
    DraftOptions options = draft_options("eagle3");
    options.proposals = Proposals::plain;
    return options;
}

TEST(Eagle3, FirstTrees) {
    Bundled model(options_of(DType::F32));
    std::vector<Candidate> table;
    DraftOptions options = plain_tree();
    options.on_level = [&](const DraftState&, std::span<Candidate> all, int, int) {
        table.assign(all.begin(), all.end());
    };
    auto drafting = model.drafting(options);
    EXPECT_EQ(first_trees_finding(*drafting.session, "eagle3", table), "");
}

TEST(Eagle3, Tau) {
    Bundled model(options_of(DType::F32));
    auto drafting = model.drafting(plain_tree());
    const GoldenRun run = run_golden(model, "eagle3", *drafting.session);
    EXPECT_EQ(golden_finding(run), "");
    const double want = read_data("tau.json").find("eagle3")->find("all")->number();
    const double tau = run.all.at("all").value();
    std::printf("tau %.4f, reference %.4f\n", tau, want);
    EXPECT_NEAR(tau / want, 1, kTauTolerance);
}

// Changed copies of the bundled head.
class Copies : public testing::Test {
  protected:
    using Rename = std::function<std::string(const std::string&)>;
    std::filesystem::path copy(const std::string& folder, const Json& config,
                               const Rename& rename = {}) const {
        std::vector<Stored> tensors = tensors_;
        for (Stored& tensor : tensors)
            if (rename && tensor.name.find('.') != std::string::npos)
                tensor.name = rename(tensor.name);
        folder_.write(folder + "/config.json", config.dump());
        folder_.write(folder + "/model.safetensors", safetensors_of(tensors));
        return folder_.path() / folder;
    }
    Json config() const {
        return Json::parse(read_text(kHead / "config.json", 1 << 16), "config.json");
    }
    // The first trees of three prompts, with the values of all candidates.
    static std::string trees(const std::filesystem::path& head, HeadOptions choices = {}) {
        LoadOptions wanted = options_of(DType::F32, head);
        wanted.head_options = std::move(choices);
        DraftOptions options = plain_tree();
        Bundled model(wanted);
        std::string text;
        options.on_level = [&](const DraftState&, std::span<Candidate> all, int first, int last) {
            for (int i = first; i < last; ++i)
                text += std::to_string(all[size_t(i)].token) + " " +
                        std::to_string(all[size_t(i)].value) + "\n";
        };
        auto drafting = model.drafting(options);
        for (int i : {0, 1, 2}) {
            drafting.session->begin({});
            drafting.session->prefill(model.encode(sixty_prompts()[size_t(i)]));
            for (const int token : drafting.session->propose().tokens)
                text += std::to_string(token) + " ";
        }
        return text;
    }

    const std::vector<Stored> tensors_ = Stored::all_of(kHead);
    const TestFolder folder_;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    return at == text.npos ? text : text.replace(at, from.size(), to);
}

// SpecForge's export for Hugging Face, speculators' layer names and nested configuration, and taps
// inside eagle_config; the last two name the same taps by the layers' inputs.
TEST_F(Copies, EverySpellingGivesTheSameTrees) {
    const std::string want = trees(kHead);
    ASSERT_FALSE(want.empty());
    EXPECT_EQ(
        trees(copy("model", config(), [](const std::string& name) { return "model." + name; })),
        want);
    const auto by_number = [](const std::string& name) {
        return replaced(name, "midlayer.", "layers.0.");
    };
    EXPECT_EQ(trees(copy("numbered", config(), by_number)), want);
    const Json plain = config();
    Json nested = Json::Object{{"speculators_model_type", "eagle3"},
                               {"draft_vocab_size", 2048},
                               {"transformer_layer_config", plain},
                               {"eagle_aux_hidden_state_layer_ids", Json::Array{2, 3, 5}}};
    EXPECT_EQ(trees(copy("speculators", nested, by_number)), want);
    Json inner{Json::Object{}};
    for (const auto& [key, value] : *plain.object())
        if (key != "eagle_aux_hidden_state_layer_ids") inner.set(key, value);
    inner.set("eagle_config",
              Json::Object{{"eagle_aux_hidden_state_layer_ids", Json::Array{2, 3, 5}}});
    EXPECT_EQ(trees(copy("inner", inner)), want);
}

// The same head in a GGUF file of llama.cpp, in both types, and in a file that llama.cpp's
// converter wrote if $AERIE_TEST_GGUF_HEAD names one: all draft the same trees.
TEST_F(Copies, GgufFilesGiveTheSameTrees) {
    const std::string want = trees(kHead);
    for (const DType type : {DType::F32, DType::F16}) {
        const auto file = folder_.write(std::string(name(type)) + ".gguf",
                                        gguf_head(config(), tensors_, type).file());
        EXPECT_EQ(head_kind(file).name, "an EAGLE-3 head");
        EXPECT_EQ(trees(file), want) << name(type);
    }
    if (const char* converted = std::getenv("AERIE_TEST_GGUF_HEAD")) {
        EXPECT_EQ(trees(converted), want);
    }
}

// EAGLE-3.1's norms, and a norm of all taps: even with weights of one they change what is drafted.
TEST_F(Copies, NormsAreApplied) {
    const std::string want = trees(kHead);
    std::set<std::string> seen = {want};
    Json fed_back = config();
    fed_back.set("norm_output", true);
    EXPECT_TRUE(seen.insert(trees(copy("fed_back", fed_back))).second);
    std::vector<Stored> with_norm = tensors_;
    Stored norm{"input_norm.weight", {768}, DType::F32, {}};
    for (int i = 0; i < 768; ++i) norm.data += little_endian(0x3f800000, 4);
    with_norm.push_back(norm);
    folder_.write("features/config.json", config().dump());
    folder_.write("features/model.safetensors", safetensors_of(with_norm));
    EXPECT_TRUE(seen.insert(trees(folder_.path() / "features")).second);
    // The same norm in a GGUF file gives the same trees.
    const auto file =
        folder_.write("features.gguf", gguf_head(config(), with_norm, DType::F16).file());
    EXPECT_FALSE(seen.insert(trees(file)).second);
    for (const int tap : {0, 1, 2}) {
        if (tap > 0) with_norm.push_back(norm);
        with_norm.back().name = "fc_norm." + std::to_string(tap) + ".weight";
        with_norm.back().shape = {256};
        with_norm.back().data.resize(256 * sizeof(float));
    }
    folder_.write("features/model.safetensors", safetensors_of(with_norm));
    EXPECT_TRUE(seen.insert(trees(folder_.path() / "features")).second);
}

// Mistakes that a reader may make give other trees.
TEST_F(Copies, MistakesGiveOtherTrees) {
    const std::string want = trees(kHead);
    EXPECT_NE(trees(kHead, {.taps = {1, 2, 4}}), want);
    EXPECT_EQ(trees(kHead, {.taps = {2, 3, 5}}), want);
    EXPECT_NE(trees(kHead, {.theta = 5e5}), want);
    Json residual = config();
    residual.set("norm_before_residual", true);
    EXPECT_NE(trees(copy("residual", residual)), want);
}

}  // namespace
}  // namespace aerie::test
