// Every architecture with random weights: a row's logits have the same bits whatever rows stand
// beside it or go to the same experts, and speculation changes no text.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "engine/checks.h"
#include "engine/watched_backend.h"
#include "model/make/random_weights.h"
#include "model/make/shapes.h"

namespace aerie::test {
namespace {

constexpr const char* kShapes[] = {"llama-3.1-8b", "llama-3.2-1b", "mistral-7b",   "qwen2.5-7b",
                                   "qwen3-8b",     "mixtral-8x7b", "qwen3-30b-a3b"};

// Adds the windows and RoPE scaling that these architectures are published with, scaled down to
// texts of some hundred tokens.
void add_reach(ModelConfig& config) {
    constexpr int kTrained = 64, kWindow = 24;
    Rope& rope = config.rope;
    if (config.architecture == "llama") rope.scaling = Rope::Scaling::llama3;
    if (config.architecture == "qwen3") rope.scaling = Rope::Scaling::yarn;
    if (rope.scaling != Rope::Scaling::none) {
        rope.trained_context = kTrained;
        rope.factor = 8;
        rope.attention = 1.2;
    }
    if (config.architecture == "mistral") config.windows.assign(size_t(config.layers), kWindow);
    if (config.architecture == "qwen2") config.windows = {0, kWindow, kWindow};
}

// A small configuration with as many experts as the named one, and with dense layers among them
// where the architecture may have some.
ModelConfig small_config(const std::string& shape) {
    ShapeChanges changes;
    changes.hidden = 64;
    changes.intermediate = 32;
    changes.layers = 3;
    changes.heads = 4;
    changes.kv_heads = 2;
    changes.head_dim = 16;
    changes.vocab = 300;
    changes.context = 512;
    ModelConfig config = model_shape(shape, changes);
    if (config.experts.count > 0 && config.experts.names->some_are_dense)
        config.experts.dense = {1};
    add_reach(config);
    return config;
}

LoadOptions options_of(DType type) {
    LoadOptions options;
    options.device = test_device();
    options.weights = type;
    options.kv = type == DType::F32 ? DType::F32 : DType::F16;
    options.draft.method = "eagle2";
    return options;
}

class Architectures : public testing::TestWithParam<std::tuple<const char*, DType>> {
  protected:
    Logits logits(Session& session, int row) {
        Logits values(size_t(session.logits().cols));
        model_.backend().read(session.logits().row_range(row, 1), values.data());
        return values;
    }
    std::vector<int> random_tokens(int count, unsigned seed) {
        std::mt19937 random(seed);
        std::vector<int> tokens;
        while (int(tokens.size()) < count)
            tokens.push_back(int(random() % unsigned(model_.target().config().vocab)));
        return tokens;
    }

    const LoadOptions options_ = options_of(std::get<DType>(GetParam()));
    Model model_{
        ModelFiles::random("small", small_config(std::get<const char*>(GetParam())), options_),
        options_, open_device(options_.device, {options_.threads})};
};

// Trees that hide the text's continuation; a part of it is accepted in each cycle.
TEST_P(Architectures, RowsOfTreesAreThoseOfPlainDecoding) {
    constexpr int kFirst = 20, kCount = 70;
    const std::vector<int> text = random_tokens(kFirst + kCount, 1);
    const std::span<const int> prompt = std::span(text).first(kFirst);
    std::vector<Logits> want;  // logits after each token from kFirst on
    const auto plain = model_.start_session(draft_options("none"));
    plain.session->begin({});
    plain.session->prefill(prompt);
    for (int i = kFirst; i + 1 < int(text.size()); ++i) {
        const TokenTree root(text[size_t(i)]);
        plain.session->verify(root);
        want.push_back(logits(*plain.session, 0));
        plain.session->commit(root, {{0}, text[size_t(i + 1)]});
    }

    DraftOptions draft = draft_options("eagle2");
    draft.tree = {kMaxNodes, kMaxDepth, 2};
    const auto drafting = model_.start_session(draft);
    Session& session = *drafting.session;
    session.begin({});
    session.prefill(prompt);
    std::mt19937 random(2);
    int rows = 0;
    for (int done = 0; done + 8 < int(want.size());) {
        const int nodes = 8 + int(random() % (kMaxNodes - 7));
        TokenTree tree(text[size_t(kFirst + done)]);
        std::vector<int> path = {0};
        while (tree.size() < nodes) {
            const bool extends = path.size() < 8 && random() % 3 == 0;
            const int token = extends ? text[size_t(kFirst + done) + path.size()]
                                      : int(random() % unsigned(want[0].size()));
            const int parent = extends ? path.back() : int(random() % 2) * path.back();
            if (extends) path.push_back(tree.size());
            tree.add(token, parent);
        }
        session.verify(tree);
        for (size_t d = 0; d < path.size(); ++d, ++rows)
            ASSERT_TRUE(same_bits(logits(session, path[d]), want[size_t(done) + d]))
                << nodes << " nodes, depth " << d;
        const size_t accepted = random() % path.size();
        done += int(accepted) + 1;
        session.commit(tree, {DepthList<int>(std::span(path).first(accepted + 1)),
                              text[size_t(kFirst + done)]});
    }
    std::printf("%d rows in trees of 8..64 nodes\n", rows);
}

TEST_P(Architectures, EveryCuttingOfThePrompt) {
    const std::vector<int> prompt = random_tokens(140, 3);
    Logits want;
    for (int rows : {kPrefillRows, 1, 3, 8, 63, 64, 65, 100}) {
        BatchLimits limits = model_.limits();
        limits.prefill_rows = rows;
        const auto drafting = model_.start_session(draft_options("none"), limits);
        drafting.session->begin({});
        drafting.session->prefill(prompt);
        const Logits got = logits(*drafting.session, 0);
        if (want.empty()) want = got;
        EXPECT_TRUE(same_bits(got, want)) << rows << " rows a pass";
    }
}

TEST_P(Architectures, DraftsChangeNoText) {
    constexpr int kTokens = 40;
    const auto none = model_.start_session(draft_options("none"));
    for (float temperature : {0.0f, 0.8f})
        for (unsigned seed : {4u, 5u}) {
            const std::vector<int> prompt = random_tokens(15, seed);
            const Sampling sampling = sampling_at(temperature, seed);
            const std::vector<int> want = decode(*none.session, prompt, kTokens, sampling);
            for (const char* method : {"lookup", "chain", "eagle2"}) {
                const auto drafting = model_.start_session(draft_options(method));
                EXPECT_EQ(decode(*drafting.session, prompt, kTokens, sampling), want)
                    << method << " at " << temperature;
            }
        }
}

class ExpertModels : public Architectures {};

// The same tensors, with those of all experts stacked into one.
Checkpoint stacked(const ModelConfig& config, DType type) {
    // Parts of each stored tensor, by its name.
    std::map<std::string, std::vector<TensorShape>> tensors;
    for (const TensorShape& tensor : target_tensors(config))
        tensors[tensor.stack.empty() ? tensor.name : tensor.stack].push_back(tensor);
    std::vector<NamedTensor> named;
    for (const auto& [name, parts] : tensors) {
        std::vector<int64_t> shape = parts[0].shape;
        if (!parts[0].stack.empty()) shape.insert(shape.begin(), int64_t(parts.size()));
        named.push_back({name, type, shape, {0, checked_bytes(shape, type, name)}});
    }
    return Checkpoint::generated(
        "stacked", std::move(named),
        [tensors, weights = RandomWeights(type, 1)](const NamedTensor& tensor, DType as,
                                                    size_t first, std::span<std::byte> out) {
            const std::vector<TensorShape>& parts = tensors.at(tensor.name);
            const size_t elements = size_t(parts[0].elements());
            while (!out.empty()) {
                const size_t in_part = first % elements;
                const size_t count = std::min(elements - in_part, elements_in(as, out.size()));
                weights.fill(parts[first / elements].name, int64_t(in_part),
                             out.first(size_bytes(as, count)));
                out = out.subspan(size_bytes(as, count));
                first += count;
            }
        });
}

// GGUF files store experts like this.
TEST_P(ExpertModels, ExpertsMayLieInOneTensor) {
    const ModelConfig& config = model_.target().config();
    const DType type = is_float(*options_.weights) ? *options_.weights : DType::F16;
    ModelFiles files = ModelFiles::random("small", config, options_);
    const MemoryPlan apart = files.plan(options_, model_.backend());
    files.target.tensors = stacked(config, type);
    ASSERT_LT(files.target.tensors.tensors().size(), target_tensors(config).size());
    const MemoryPlan together = files.plan(options_, model_.backend());
    EXPECT_EQ(together.target_weights, apart.target_weights);
    EXPECT_EQ(together.target_types, apart.target_types);
    Model other(std::move(files), options_, open_device(options_.device));
    const std::vector<int> prompt = random_tokens(20, 6);
    const auto a = model_.start_session(draft_options("none")),
               b = other.start_session(draft_options("none"));
    EXPECT_EQ(decode(*a.session, prompt, 12), decode(*b.session, prompt, 12));
}

std::string name_of(const testing::TestParamInfo<std::tuple<const char*, DType>>& info) {
    std::string shape = std::get<const char*>(info.param);
    for (char& c : shape)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return shape + "_" + name(std::get<DType>(info.param));
}

const auto kTypes = testing::Values(DType::F32, DType::F16, DType::Q8_0, DType::Q4_0);
INSTANTIATE_TEST_SUITE_P(Types, Architectures, testing::Combine(testing::ValuesIn(kShapes), kTypes),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Types, ExpertModels,
                         testing::Combine(testing::Values("mixtral-8x7b", "qwen3-30b-a3b"), kTypes),
                         name_of);

}  // namespace
}  // namespace aerie::test
