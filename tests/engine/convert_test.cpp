// Models that are converted to GGUF files compute the same logits, bit by bit.
#include <gtest/gtest.h>

#include "core/pending_file.h"
#include "engine/checks.h"
#include "io/damage.h"
#include "model/make/gguf_export.h"

namespace aerie::test {
namespace {

class Converted : public testing::TestWithParam<const char*> {
  protected:
    LoadOptions options(const std::filesystem::path& model) const {
        LoadOptions options;
        options.device = "cpu";
        options.model = model;
        options.kv = DType::F32;
        options.draft = draft_options("none");
        return options;
    }
    std::vector<float> logits_of(const std::filesystem::path& path,
                                 std::optional<DType> weights) const {
        LoadOptions options = this->options(path);
        options.weights = weights;
        Model model(ModelFiles::open(options), options);
        Model::Drafting plain = model.start_session(draft_options("none"));
        plain.session->begin({});
        plain.session->prefill(prompt_);
        std::vector<float> logits(size_t(plain.session->logits().cols));
        model.backend().read(plain.session->logits().row_range(0, 1), logits.data());
        return logits;
    }
    void write(std::optional<DType> weights) const {
        const ModelSource source = open_model(model_);
        const GgufExport made(source, weights);
        std::filesystem::remove(file_);
        PendingFile file(file_, PendingFile::Kind::file);
        write_gguf(file, made.metadata(), made.tensors(), made.rows());
        file.finish();
    }

    const std::filesystem::path model_ = test_data_dir() / "real" / GetParam();
    const TestFolder folder_;
    const std::filesystem::path file_ = folder_.path() / "m.gguf";
    const std::vector<int> prompt_ = {1,  300, 47, 5,   211, 90, 17, 3,  400, 256, 33, 8, 100,
                                      71, 22,  9,  310, 44,  58, 61, 12, 7,   99,  2,  6, 150,
                                      80, 81,  82, 83,  84,  85, 86, 87, 88,  89,  91, 92};
};

// The prompt is longer than the window of 24 of the model that has one; llama-yarn was trained for
// 64 positions.
TEST_P(Converted, HasTheLogitsOfItsModel) {
    for (const std::optional<DType> type : {std::optional<DType>(), std::optional(DType::F32)}) {
        write(type);
        const std::vector<float> got = logits_of(file_, std::nullopt),
                                 want = logits_of(model_, type);
        // llama3's scaling becomes factors, which are rounded to f32, so its logits may differ a
        // little.
        const double most = std::string(GetParam()).starts_with("llama3") ? 1e-4 : 0;
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], most) << i;
    }
}

TEST_P(Converted, FileSaysWhatTheFolderSays) {
    write({});
    ModelConfig want = target_config(open_model(model_));
    const ModelConfig got = target_config(open_model(file_));
    EXPECT_EQ(got.windows, want.windows);
    EXPECT_EQ(got.experts.count, want.experts.count);
    EXPECT_EQ(got.experts.normalised, want.experts.normalised);
    for (int layer = 0; layer < want.layers; ++layer)
        EXPECT_EQ(got.experts.in_layer(layer), want.experts.in_layer(layer)) << layer;
    EXPECT_EQ(got.tied_embeddings, want.tied_embeddings);
    EXPECT_EQ(got.context, want.context);
    EXPECT_EQ(got.rope.attention, want.rope.attention);
    for (int pair = 0; pair < want.attention.head_dim / 2; ++pair)
        EXPECT_FLOAT_EQ(float(got.rope.frequency(pair, got.attention.head_dim)),
                        float(want.rope.frequency(pair, want.attention.head_dim)));
}

INSTANTIATE_TEST_SUITE_P(Real, Converted,
                         testing::Values("llama3", "llama3-tied", "llama-linear", "llama-yarn",
                                         "mistral-window", "mixtral", "qwen2", "qwen3",
                                         "qwen3-moe"),
                         [](const auto& info) {
                             std::string name = info.param;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

// Fields that the real models lack and other models have: windows in some layers, experts with
// weights that are not normalised, dense layers by step.
TEST(GgufExport, SaysWhatIsRare) {
    const TestFolder folder;
    ModelConfig config = target_config(open_model(test_data_dir() / "real" / "qwen3-moe"));
    config.windows = {0, 7, 0};
    config.experts.normalised = false;
    config.experts.step = 2;
    config.experts.dense = {};
    config.rope.scaling = Rope::Scaling::yarn;
    config.rope.factor = 4;
    config.rope.trained_context = 64;
    config.rope.fast = 24;
    config.rope.attention = 1.5;
    LoadOptions options;
    options.weights = DType::F32;
    options.draft = draft_options("none");
    const ModelFiles files = ModelFiles::random("rare", config, options);
    const GgufExport made(files.target, DType::F16);
    EXPECT_EQ(made.warnings().size(), 4u);
    const std::filesystem::path path = folder.path() / "m.gguf";
    PendingFile file(path, PendingFile::Kind::file);
    write_gguf(file, made.metadata(), made.tensors(), made.rows());
    file.finish();
    const ModelConfig got = target_config(open_model(path));
    EXPECT_EQ(got.windows, config.windows);
    EXPECT_FALSE(got.experts.normalised);
    for (int layer : {0, 1, 2}) EXPECT_EQ(got.experts.in_layer(layer), layer == 1);
    EXPECT_EQ(got.rope.fast, 24);
    EXPECT_EQ(got.rope.slow, 1);
    EXPECT_NEAR(got.rope.attention, 1.5, 1e-6);
    config.rope.exact = true;
    const ModelFiles exact = ModelFiles::random("exact", config, options);
    EXPECT_THROW(GgufExport(exact.target, {}), Error);
}

}  // namespace
}  // namespace aerie::test
