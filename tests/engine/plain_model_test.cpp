// Models with every bias, with windows by layer, and with scaled positions, against doubles.
#include "engine/plain_model.h"

#include <gtest/gtest.h>

#include "engine/bundled.h"
#include "engine/reach.h"
#include "io/damage.h"

namespace aerie::test {
namespace {

constexpr int kVocab = 96;

ModelConfig small_config() {
    ModelConfig config;
    config.architecture = "llama";
    config.hidden = 64;
    config.intermediate = 96;
    config.layers = 3;
    config.vocab = kVocab;
    config.context = 512;
    config.attention = {4, 2, 16};
    return config;
}

std::vector<int> some_tokens(int count) {
    std::vector<int> tokens;
    for (int i = 0; i < count; ++i) tokens.push_back((i * i * 7 + i * 31 + 5) % kVocab);
    return tokens;
}

Checkpoint tensors_of(const ModelConfig& config) {
    return lively_checkpoint(target_tensors(config), 5);
}

// A model of this configuration with the tensors of another one.
Model open_model(const ModelConfig& config, const ModelConfig& stored, DType type = DType::F32) {
    LoadOptions options;
    options.weights = type;
    options.kv = type == DType::F32 ? DType::F32 : DType::F16;
    options.draft = draft_options("none");
    ModelFiles files = ModelFiles::random("small", config, options);
    files.target.tensors = tensors_of(stored);
    return {std::move(files), options, open_device(test_device())};
}

// Logits after the text, by plain decoding.
reference::Matrix logits_of(Model& model, const std::vector<int>& tokens) {
    auto drafting = model.start_session(draft_options("none"));
    drafting.session->begin({});
    drafting.session->prefill(tokens);
    reference::Matrix logits(1, kVocab);
    model.backend().read(drafting.session->logits().row_range(0, 1), logits.data.data());
    return logits;
}

reference::Exact last_of(const reference::Exact& all) {
    reference::Exact last(1, all.cols);
    std::copy_n(all[all.rows - 1], all.cols, last[0]);
    return last;
}

// The error of a model against another one in doubles.
double distance(const ModelConfig& config, const ModelConfig& other, int count) {
    const Checkpoint stored = tensors_of(config);
    Model model = open_model(config, config);
    const std::vector<int> tokens = some_tokens(count);
    return nmse(logits_of(model, tokens), last_of(PlainModel(other, stored).logits(tokens)));
}

constexpr double kSame = 1e-10, kOther = 1e-4;

ModelConfig with_all_biases() {
    ModelConfig config = small_config();
    config.qkv_bias = config.attention_output_bias = config.mlp_bias = true;
    return config;
}

TEST(PlainModel, BiasesAreAdded) {
    const ModelConfig all = with_all_biases();
    for (int count : {1, 9, 70}) {
        EXPECT_LE(distance(all, all, count), kSame) << count;
        for (bool ModelConfig::*bias : {&ModelConfig::qkv_bias, &ModelConfig::attention_output_bias,
                                        &ModelConfig::mlp_bias}) {
            ModelConfig without = all;
            without.*bias = false;
            EXPECT_GE(distance(all, without, count), kOther) << count;
        }
    }
}

TEST(PlainModel, EachBiasMayBeAlone) {
    for (bool ModelConfig::*bias :
         {&ModelConfig::qkv_bias, &ModelConfig::attention_output_bias, &ModelConfig::mlp_bias}) {
        ModelConfig config = small_config();
        config.*bias = true;
        EXPECT_LE(distance(config, config, 20), kSame);
    }
}

TEST(PlainModel, WindowsHideWhatLiesBeforeThem) {
    ModelConfig config = small_config();
    config.windows = {5, 0, 65};
    for (int count : {5, 66, 150}) EXPECT_LE(distance(config, config, count), kSame) << count;
    for (size_t layer = 0; layer < config.windows.size(); ++layer) {
        ModelConfig other = config;
        other.windows[layer] += 1;
        EXPECT_GE(distance(config, other, 150), 1e3 * kSame) << layer;
    }
}

TEST(PlainModel, YarnScalesPositions) {
    ModelConfig config = small_config();
    config.rope.scaling = Rope::Scaling::yarn;
    config.rope.trained_context = 64;
    config.rope.factor = 4;
    config.rope.attention = 1.1386;
    config.windows = {0, 24, 0};
    EXPECT_LE(distance(config, config, 150), kSame);
    ModelConfig plain = config;
    plain.rope = {};
    EXPECT_GE(distance(config, plain, 150), kOther);
}

// Heads with sizes that are no multiple of 16, such as 100 in open_llama_3b and 24 in a small MoE.
ModelConfig with_heads_of(int size) {
    ModelConfig config = small_config();
    config.attention.head_dim = (size + 15) / 16 * 16;
    config.file_head_dim = size;
    return config;
}

TEST(PlainModel, HeadsOfAnySizeHaveTheirOwnNumbers) {
    for (const int size : {2, 8, 24, 40, 100}) {
        ModelConfig config = with_heads_of(size);
        for (const int count : {1, 9, 70})
            EXPECT_LE(distance(config, config, count), kSame) << size;
        config.qkv_bias = config.attention_output_bias = true;
        config.windows = {5, 0, 65};
        EXPECT_LE(distance(config, config, 70), kSame) << size;
        config.qk_norm = true;
        config.rms_epsilon = 1e-3f;  // as large as the mean that it is added to
        EXPECT_LE(distance(config, config, 70), kSame) << size;
        config.rope.scaling = Rope::Scaling::yarn;
        config.rope.trained_context = 64;
        config.rope.factor = 4;
        config.rope.attention = 1.1386;
        EXPECT_LE(distance(config, config, 70), kSame) << size;
    }
}

// The scale, the rotated pairs and the norms are those of the true size.
TEST(PlainModel, HeadsOfAnotherSizeCanBeTold) {
    const ModelConfig config = with_heads_of(24);
    const Checkpoint stored = tensors_of(config);
    Model model = open_model(config, config);
    const std::vector<int> tokens = some_tokens(40);
    const auto got = logits_of(model, tokens);
    ModelConfig other = config;
    other.rope.theta *= 2;
    EXPECT_GE(nmse(got, last_of(PlainModel(other, stored).logits(tokens))), 1e3 * kSame);
}

TEST(PlainModel, PaddedHeadsKeepEachRowsBits) {
    const ModelConfig config = with_heads_of(24);
    for (const DType type : {DType::F32, DType::F16, DType::Q8_0}) {
        Model model = open_model(config, config, type);
        const std::vector<int> tokens = some_tokens(150);
        const auto whole = logits_of(model, tokens);
        BatchLimits limits = model.limits();
        limits.prefill_rows = 7;
        auto drafting = model.start_session(draft_options("none"), limits);
        drafting.session->begin({});
        drafting.session->prefill(tokens);
        reference::Matrix cut(1, kVocab);
        model.backend().read(drafting.session->logits().row_range(0, 1), cut.data.data());
        EXPECT_EQ(cut.data, whole.data) << name(type);
    }
}

TEST(PlainModel, PaddedHeadsOfQuantisedWeights) {
    // 4 heads of 24 give o_proj columns in whole groups of 32.
    const ModelConfig config = with_heads_of(24);
    const Checkpoint stored = tensors_of(config);
    const std::vector<int> tokens = some_tokens(40);
    const auto want = last_of(PlainModel(config, stored).logits(tokens));
    for (const auto& [type, most] : {std::pair(DType::F16, 1e-5), {DType::Q8_0, 1e-3}}) {
        Model model = open_model(config, config, type);
        EXPECT_LE(nmse(logits_of(model, tokens), want), most) << name(type);
    }
}

// The tolerance of q8_0 is what rounding activations to eight bits costs.
TEST(PlainModel, BiasesAreAddedToQuantisedProducts) {
    const ModelConfig config = with_all_biases();
    const Checkpoint stored = tensors_of(config);
    const std::vector<int> tokens = some_tokens(40);
    const auto want = last_of(PlainModel(config, stored).logits(tokens));
    for (const auto& [type, most] : {std::pair(DType::F16, 1e-5), {DType::Q8_0, 1e-3}}) {
        Model model = open_model(config, config, type);
        EXPECT_LE(nmse(logits_of(model, tokens), want), most) << name(type);
    }
}

TEST(PlainModel, BiasesThatNobodyAskedForAreRefused) {
    ModelConfig config = with_all_biases();
    const ModelConfig stored = config;
    config.mlp_bias = false;
    EXPECT_NE(error_of([&] {
                  open_model(config, stored);
              }).find("'model.layers.0.mlp.down_proj.bias' is there"),
              std::string::npos);
    config.mlp_bias = true;
    config.attention_output_bias = false;
    EXPECT_NE(error_of([&] {
                  open_model(config, stored);
              }).find("'model.layers.0.self_attn.o_proj.bias' is there"),
              std::string::npos);
}

// Biases of what is not loaded, such as a vision encoder, say nothing about the text model.
TEST(PlainModel, BiasesOfOtherPartsAreIgnored) {
    const ModelConfig config = small_config();
    std::vector<TensorShape> tensors = target_tensors(config);
    tensors.push_back({"vision.fc.weight", {4, 4}});
    tensors.push_back({"vision.fc.bias", {4}});
    EXPECT_NO_THROW(
        refuse_other_weights(config, random_checkpoint("both", tensors, DType::F16, 1)));
    tensors.push_back({"model.norm.bias", {config.hidden}});
    EXPECT_THROW(refuse_other_weights(config, random_checkpoint("both", tensors, DType::F16, 1)),
                 Error);
}

// A configuration with fewer layers than its file would make another model of it.
TEST(PlainModel, FurtherLayersAndMatricesAreRefused) {
    const ModelConfig config = small_config();
    const std::vector<TensorShape> own = target_tensors(config);
    const std::string next = "model.layers." + std::to_string(config.layers) + ".";
    for (const auto& [name, why] :
         {std::pair(next + "input_layernorm.weight", "layers"),
          {std::string("model.layers.0.mlp.gate.weight"), "asks for no such weight"}}) {
        std::vector<TensorShape> tensors = own;
        tensors.push_back({name, {config.hidden, config.hidden}});
        const Checkpoint checkpoint = random_checkpoint("more", tensors, DType::F16, 1);
        const std::string error = error_of([&] { refuse_other_weights(config, checkpoint); });
        EXPECT_NE(error.find("'" + name + "' is there, but the configuration"), std::string::npos);
        EXPECT_NE(error.find(why), std::string::npos) << error;
    }
}

// A bias that the configuration asks for and the file lacks is named, too.
TEST(PlainModel, MissingBiasesAreNamed) {
    ModelConfig config = small_config();
    const ModelConfig stored = config;
    config.mlp_bias = true;
    EXPECT_NE(
        error_of([&] { open_model(config, stored); }).find("'model.layers.0.mlp.gate_proj.bias'"),
        std::string::npos);
}

}  // namespace
}  // namespace aerie::test
