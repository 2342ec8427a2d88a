// A smaller language model that drafts: texts stay those of plain decoding whatever its shape, its
// vocabulary and its types; a model with other tokens is refused.
#include <gtest/gtest.h>

#include "engine/draft_model.h"
#include "io/damage.h"
#include "tools/write_model.h"

namespace aerie::test {
namespace {

size_t prompt_count(size_t otherwise) {
    const char* count = std::getenv("AERIE_TEST_PROMPTS");
    return std::min<size_t>(count ? size_t(std::atoi(count)) : otherwise, 40);
}

// Cycles and tokens of texts that must equal those of plain decoding.
struct Decoded {
    int cycles = 0, tokens = 0;
    int fewest = 0;  // cycles if all drafts were accepted

    double tau() const { return double(tokens) / cycles; }
};

Decoded run_texts(Bundled& model, const DraftOptions& draft, float temperature, size_t prompts) {
    const auto plain = model.drafting(draft_options("none"));
    const auto drafting = model.drafting(draft);
    const int most = drafting.drafter->reach().depth + 1;  // tokens that a cycle can put out
    Decoded decoded;
    for (size_t i = 0; i < prompts; ++i) {
        Request request =
            model.request(prompt_of(model, i), most_tokens(48), sampling_at(temperature, 1000 + i));
        request.eos_ids.clear();
        const GenerationResult got = model.run(*drafting.session, request);
        EXPECT_EQ(got.ids, model.run(*plain.session, request).ids) << "prompt " << i;
        decoded.tokens += got.stats.cycle_tokens;
        decoded.cycles += got.stats.cycles;
        decoded.fewest += (got.stats.cycle_tokens + most - 1) / most;
    }
    return decoded;
}

class DraftModelTexts : public testing::TestWithParam<std::tuple<DType, float>> {
  protected:
    // The bundled model with fewer ids, or with more ids that are as likely as its first ones.
    std::filesystem::path copy_with(int vocab) const {
        const std::string name = std::to_string(vocab);
        const std::filesystem::path copy =
            copy_without_weights("aerie-tiny", folder_.path() / name);
        std::vector<Stored> tensors = Stored::all_of(models_dir() / "aerie-tiny");
        for (Stored& tensor : tensors)
            if (tensor.shape.front() == 4096) {
                const size_t row = tensor.data.size() / 4096;
                tensor.data += tensor.data;
                tensor.data.resize(row * size_t(vocab));
                tensor.shape.front() = vocab;
            }
        folder_.write(name + "/model.safetensors", safetensors_of(tensors));
        Json config{Json::Object{{"vocab_size", vocab}}};
        const Json whole = Json::parse(read_text(copy / "config.json", 1 << 16), "config.json");
        for (const auto& [key, value] : *whole.object())
            if (key != "vocab_size") config.set(key, value);
        folder_.write(name + "/config.json", config.dump());
        return copy;
    }

    const TestFolder folder_;
};

// The drafters are the target itself, a copy with coarser weights, and copies with more or fewer
// ids.
TEST_P(DraftModelTexts, AreThoseOfPlainDecoding) {
    const auto [type, temperature] = GetParam();
    const struct {
        std::filesystem::path folder;
        DType type;
        bool is_target;
    } drafters[] = {{models_dir() / "aerie-tiny", type, true},
                    {models_dir() / "aerie-tiny", DType::Q4_0, type == DType::Q4_0},
                    {copy_with(4200), type, true},
                    {copy_with(4090), type, false}};
    for (const auto& drafter : drafters) {
        LoadOptions options = options_of(type, drafter.type);
        options.head = drafter.folder;
        Bundled model(options);
        for (const DraftOptions& draft : kTrees) {
            const Decoded decoded = run_texts(model, draft, temperature, prompt_count(2));
            const bool is_chain = draft.tree && draft.tree->top_k == 1;
            std::printf("%s at %.1f by %s in %s, %s: tau %.3f\n", name(type), double(temperature),
                        drafter.folder.filename().c_str(), name(drafter.type),
                        !draft.tree ? "auto"
                        : is_chain  ? "chain"
                                    : "tree",
                        decoded.tau());
            if (is_chain && drafter.is_target) {
                EXPECT_EQ(decoded.cycles, decoded.fewest);
            }
            if (draft.tree) {
                EXPECT_GT(decoded.tau(), 2) << "hardly anything is accepted";
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Types, DraftModelTexts,
                         testing::Combine(testing::Values(DType::F16, DType::Q8_0, DType::Q4_0),
                                          testing::Values(0.0f, 0.8f)),
                         [](const auto& info) {
                             return std::string(name(std::get<0>(info.param))) +
                                    (std::get<1>(info.param) > 0 ? "_sampled" : "_greedy");
                         });

// Windows, experts, biases, and a context that ends long before the target's text.
TEST(DraftModel, MayHaveAnyArchitecture) {
    std::vector<ModelConfig> shapes;
    for (const char* like :
         {"mistral-7b", "qwen2.5-7b", "qwen3-8b", "mixtral-8x7b", "qwen3-30b-a3b", "llama-3.2-1b"})
        shapes.push_back(small_shape(4160, like));
    shapes.front().windows = {24, 0};
    shapes.back().context = 16;
    for (const ModelConfig& shape : shapes) {
        Bundled model = model_with(options_of(DType::F16, DType::F16), &shape);
        for (const DraftOptions& draft : kTrees) run_texts(model, draft, 0.8f, 1);
    }
}

// A draft model also drafts chains.
TEST(DraftModel, DraftsChainsToo) {
    Bundled model = model_with(options_of(DType::F16, DType::F16), nullptr);
    DraftOptions chain = draft_options("chain");
    chain.chain_length = 3;
    const Decoded decoded = run_texts(model, chain, 0.8f, 2);
    EXPECT_EQ(decoded.cycles, decoded.fewest);
}

// A copy of the bundled model with a tokenizer that a test changes.
class OtherTokens : public testing::Test {
  protected:
    void SetUp() override {
        std::filesystem::copy(models_dir() / "aerie-tiny", copy_);
        options_.head = copy_;
    }
    std::string error() const {
        return error_of([&] { (void)ModelFiles::open(options_); });
    }

    const TestFolder folder_;
    const std::filesystem::path copy_ = folder_.path() / "other";
    LoadOptions options_ = options_of(DType::F16, DType::F16);
};

TEST_F(OtherTokens, AreNamedInOneLine) {
    EXPECT_EQ(error(), "");
    const std::string text(Tokenizer::load(copy_).bpe().text(2000));
    const std::string other(text.size(), '~');
    const auto entry = [](const std::string& piece) {
        return "\x0a" + (char(piece.size()) + piece);
    };
    std::string file = read_text(copy_ / "tokenizer.model", 1 << 24);
    const size_t at = file.find(entry(text));
    ASSERT_NE(at, file.npos);
    folder_.write("other/tokenizer.model", file.replace(at, text.size() + 2, entry(other)));
    EXPECT_EQ(error(), copy_.string() + ": this model cannot draft for " + options_.model.string() +
                           ": token 2000 is '" + other + "', the target's is '" + text + "'");
}

TEST_F(OtherTokens, OfAnotherFamily) {
    std::filesystem::copy(test_data_dir() / "tokenizers/qwen2.json", copy_ / "tokenizer.json");
    std::filesystem::remove(copy_ / "tokenizer_config.json");
    EXPECT_NE(error().find("token 0 is '!', the target's is '<unk>'"), std::string::npos)
        << error();
}

TEST_F(OtherTokens, UnknownWithoutATokenizer) {
    std::filesystem::remove(copy_ / "tokenizer.model");
    EXPECT_NE(error().find("other: no tokenizer.json"), std::string::npos) << error();
}

// Weights that a file stores quantised stay so; floats become the type that a head's weights would:
// q4_0 beside a target of four bits, else q8_0.
TEST(DraftModel, IsLoadedAsSmallAsAHead) {
    LoadOptions options = options_of(DType::F16, DType::F16);
    options.draft_weights.reset();
    EXPECT_EQ(ModelFiles::open(options).draft_weights, DType::Q8_0);
    for (DType of_four_bits : {DType::Q4_0, DType::Q4_K}) {
        options.weights = of_four_bits;
        EXPECT_EQ(ModelFiles::open(options).draft_weights, DType::Q4_0) << name(of_four_bits);
    }
    options.weights = DType::Q5_K;
    EXPECT_EQ(ModelFiles::open(options).draft_weights, DType::Q8_0);
}

}  // namespace
}  // namespace aerie::test
