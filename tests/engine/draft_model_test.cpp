// A smaller language model that drafts: texts stay those of plain decoding whatever its shape, its
// vocabulary and its types; what it needs is what was planned; other tokens are refused.
#include <gtest/gtest.h>

#include <numeric>

#include "engine/checks.h"
#include "engine/together.h"
#include "engine/watched_backend.h"
#include "io/damage.h"
#include "measure/costs.h"
#include "model/loading.h"
#include "model/shapes.h"
#include "model/synthetic.h"
#include "tools/write_model.h"

namespace aerie::test {
namespace {

LoadOptions options_of(DType type, DType draft_type) {
    LoadOptions options = bundled_options(type, draft_type);
    options.head = options.model;
    options.draft.method = "model";
    return options;
}

// Two layers with the bundled model's tokens, and some ids more or less.
ModelConfig small_shape(int vocab, const char* like = "aerie-tiny") {
    ShapeChanges small;
    small.hidden = small.intermediate = 64;
    small.layers = small.heads = 2;
    small.kv_heads = 1;
    small.head_dim = 32;
    small.vocab = vocab;
    ModelConfig config = model_shape(like, small);
    if (config.experts.count > 0) config.experts.intermediate = 32;
    return config;
}

// The bundled target beside a model of random weights; without a shape, beside itself.
ModelFiles files_with(const LoadOptions& options, const ModelConfig* drafts) {
    ModelFiles files = ModelFiles::open(options);
    if (!drafts) return files;
    files.head_config = *drafts;
    files.head->path = "random";
    files.head->tensors = random_checkpoint("random", target_tensors(*drafts), DType::F16, 1);
    return files;
}

Bundled model_with(const LoadOptions& options, const ModelConfig* drafts) {
    return {files_with(options, drafts), options, open_device(options.device)};
}

DraftOptions tree_of_shape(std::optional<TreeShape> shape) {
    DraftOptions draft = draft_options("model");
    draft.tree = shape;
    return draft;
}

const DraftOptions kTrees[] = {tree_of_shape(TreeShape{6, 5, 1}),
                               tree_of_shape(TreeShape{16, 4, 3}), tree_of_shape({})};

// Ids at both ends of the vocabulary come first, then words.
std::vector<int> prompt_of(Bundled& model, size_t i) {
    std::vector<int> ids = {1, 4095, 4001};
    const std::vector<int> words = model.encode(sixty_prompts()[i]);
    ids.insert(ids.end(), words.begin() + 1, words.end());
    return ids;
}

size_t prompt_count(size_t otherwise) {
    const char* count = std::getenv("AERIE_TEST_PROMPTS");
    return std::min<size_t>(count ? size_t(std::atoi(count)) : otherwise, 40);
}

// Cycles and tokens of these texts, which must be those of plain decoding.
struct Decoded {
    int cycles = 0, tokens = 0;
    int fewest = 0;  // cycles in which all drafts are accepted

    double tau() const { return double(tokens) / cycles; }
};

Decoded run_texts(Bundled& model, const DraftOptions& draft, float temperature, size_t prompts) {
    const auto plain = model.drafting(draft_options("none"));
    const auto drafting = model.drafting(draft);
    const int most = drafting.drafter->reach().depth + 1;  // tokens of a cycle
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
    // The bundled model with more ids, which are as likely as its first ones, or fewer.
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

// By the target itself, by one whose numbers are coarse, and by others whose vocabularies are
// padded.
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

// Windows, experts, biases, a context that ends long before the target's text.
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

// A chain needs no tree.
TEST(DraftModel, DraftsChainsToo) {
    Bundled model = model_with(options_of(DType::F16, DType::F16), nullptr);
    DraftOptions chain = draft_options("chain");
    chain.chain_length = 3;
    const Decoded decoded = run_texts(model, chain, 0.8f, 2);
    EXPECT_EQ(decoded.cycles, decoded.fewest);
}

// As what was planned says; what a drafter takes is told apart from the weights.
TEST(DraftModel, TakesTheMemoryThatIsPlanned) {
    const ModelConfig same = small_shape(4096), wide = small_shape(4200),
                      narrow = small_shape(4000), mixtral = small_shape(4096, "mixtral-8x7b");
    for (const ModelConfig* shape : {&same, &wide, &narrow, &mixtral})
        for (const DraftOptions& draft : kTrees) {
            LoadOptions options = options_of(DType::F16, DType::Q8_0);
            options.draft = draft;
            options.context = 300;
            auto device = std::make_unique<WatchedBackend>("cpu");
            WatchedBackend& watched = *device;
            Bundled model(files_with(options, shape), options, std::move(device));
            const size_t before = watched.allocated.size();
            const auto drafter = model.model().drafter(draft, model.limits());
            const size_t taken = std::accumulate(watched.allocated.begin() + ptrdiff_t(before),
                                                 watched.allocated.end(), size_t(0));
            const ModelFiles& files = model.model().files();
            const DraftBytes planned =
                draft_method("model").bytes(files.draft_plan(draft, options, model.limits()));
            EXPECT_EQ(taken, planned.scratch + planned.weights - sum(planned.types));
            const MemoryPlan plan = files.plan(options, model.backend());
            EXPECT_EQ(plan.head_weights, planned.weights);
            EXPECT_EQ(plan.head_types.count(DType::Q8_0), 1u);
            EXPECT_GT(plan.scratch, planned.scratch);
        }
}

// Where drafting was too dear for a while, the text is read when it pays again.
TEST(DraftModel, ReadsWhatItMissed) {
    Bundled model = model_with(options_of(DType::F16, DType::F16), nullptr);
    const auto drafting = model.drafting(tree_of_shape({}));
    CostAware& costs = *drafting.drafter->cost_aware();
    const MeasuredCosts dear = {{{1, 0.01}, {64, 0.02}}, {{1, 0.5}, {10, 0.5}}, true};
    const MeasuredCosts cheap = {{{1, 0.01}, {64, 0.02}}, {{1, 0.0001}, {10, 0.0001}}, true};
    Session& session = *drafting.session;
    const auto cycles = [&](int count) {
        int nodes = 0, accepted = 0;
        for (int i = 0; i < count; ++i) {
            const TokenTree tree = session.propose();
            const Path path = accept(tree, session.verify(tree));
            session.commit(tree, path);
            nodes += tree.size() - 1;
            accepted += int(path.nodes.size()) - 1;
        }
        return std::pair(nodes, accepted);
    };
    costs.set_costs(dear);
    session.begin({});
    session.prefill(prompt_of(model, 5));
    EXPECT_EQ(cycles(100).first, 0);
    costs.set_costs(cheap);
    const auto [nodes, accepted] = cycles(20);
    EXPECT_GT(nodes, 20);
    EXPECT_GT(accepted, 20);
    const auto plain = model.drafting(draft_options("none"));
    const std::vector<int> want = decode(*plain.session, prompt_of(model, 5), 120);
    const auto tokens = session.text().tokens();
    EXPECT_TRUE(std::equal(want.begin(), want.end(),
                           tokens.begin() + ptrdiff_t(prompt_of(model, 5).size())));
}

TEST(DraftModel, ItsCostsAreMeasured) {
    const ModelConfig shape = small_shape(4000);
    Bundled model = model_with(options_of(DType::Q8_0, DType::Q8_0), &shape);
    const auto drafting = model.drafting(tree_of_shape({}));
    const MeasuredCosts costs =
        measure_costs(*drafting.session, *drafting.drafter->cost_aware(), 0.9);
    EXPECT_GT(costs.level.size(), 2u);
    EXPECT_LT(costs.level.front().seconds, costs.verify.front().seconds);
}

// Each of two texts in one batch has a text of its own, and so have forks and texts that are cut.
TEST(DraftModel, KnowsTextsApart) {
    const ModelConfig narrow = small_shape(4000);
    for (const ModelConfig* shape : {static_cast<const ModelConfig*>(nullptr), &narrow}) {
        Bundled model = model_with(options_of(DType::F16, DType::F16), shape);
        for (const DraftOptions& draft : kTrees) {
            Together both(model, "model", draft);
            std::vector<std::vector<int>> want;
            const auto plain = model.drafting(draft_options("none"));
            for (size_t i : {0, 1}) {
                const Sampling sampling = sampling_at(i == 0 ? 0 : 0.8f, 7);
                want.push_back(prompt_of(model, i));
                for (int id : decode(*plain.session, want.back(), 100, sampling))
                    want.back().push_back(id);
                both.texts[i].begin(sampling);
                both.texts[i].append(prompt_of(model, i));
                both.batch->prefill(both.texts[i]);
            }
            const auto check = [&](size_t i, const char* what) {
                const size_t count = std::min(both.texts[i].tokens().size(), want[i].size());
                EXPECT_TRUE(std::equal(want[i].begin(), want[i].begin() + ptrdiff_t(count),
                                       both.texts[i].tokens().begin()))
                    << what;
            };
            int accepted = 0;
            for (int cycle = 0; cycle < 20; ++cycle) {
                both.batch->propose(both.cycles);
                both.batch->verify(both.cycles);
                for (Cycle& one : both.cycles) {
                    one.path = accept(one.tree, one.choices);
                    accepted += int(one.path.nodes.size()) - 1;
                }
                both.batch->commit(both.cycles);
            }
            for (size_t i : {0, 1}) check(i, "together");
            if (!shape && draft.tree && draft.tree->top_k == 1) {
                EXPECT_EQ(accepted, 2 * 20 * draft.tree->levels);
            }
            extend(*both.batch, both.texts[1], want[1].size());
            for (const size_t cut : {want[0].size() - 90, size_t(64), size_t(65)}) {
                both.texts.erase(both.texts.begin());
                both.texts.push_back(both.texts[0].fork(int(cut)));
                std::swap(both.texts[0], both.texts[1]);
                both.batch->prefill(both.texts[0]);
                extend(*both.batch, both.texts[0], want[1].size());
                EXPECT_EQ(first_tokens(both.texts[0], want[1].size()), want[1]) << "fork " << cut;
                both.texts[1].truncate(int(cut));
                both.batch->prefill(both.texts[1]);
                extend(*both.batch, both.texts[1], want[1].size());
                EXPECT_EQ(first_tokens(both.texts[1], want[1].size()), want[1]) << "cut " << cut;
            }
        }
    }
}

// A copy of the bundled model, whose tokenizer a test changes.
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

// What is quantised already stays so; floats become what a head's do.
TEST(DraftModel, IsLoadedAsSmallAsAHead) {
    LoadOptions options = options_of(DType::F16, DType::F16);
    options.draft_weights.reset();
    EXPECT_EQ(ModelFiles::open(options).draft_weights, DType::Q8_0);
    options.weights = DType::Q4_0;
    EXPECT_EQ(ModelFiles::open(options).draft_weights, DType::Q4_0);
}

}  // namespace
}  // namespace aerie::test
