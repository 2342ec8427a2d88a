// Models in every form that can be loaded: the same numbers give the same ids.
#include <gtest/gtest.h>

#include "io/damage.h"
#include "model/toy_model.h"
#include "paths.h"
#include "tools/write_model.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFlags = {"-p", "USER: Hello ASSISTANT:", "-n", "32"};

std::vector<Stored> bundled(const std::string& name) {
    return Stored::all_of(models_dir() / name);
}

// A folder with the bundled model's small files and a copy of its head beside it.
class Formats : public testing::Test {
  protected:
    Formats()
        : target_(copy_without_weights("aerie-tiny", folder_.path() / "model")),
          head_(copy_without_weights("aerie-tiny-eagle", folder_.path() / "model-eagle")) {
        write_file(head_ / "model.safetensors", safetensors_of(bundled("aerie-tiny-eagle")));
    }

    // Ids with drafting, which must equal those without.
    std::string ids(const std::vector<std::string>& more = {}) const {
        const auto flags = with(with({"-m", target_.string()}, kFlags), more);
        const Json drafted = generated(with(flags, {"--tree", "8,3,4"}));
        EXPECT_EQ(field(drafted, "ids"), field(generated(with(flags, {"--draft", "none"})), "ids"));
        EXPECT_GT(drafted.find("stats")->find("tau")->number(), 1) << "the head is of no use";
        return field(drafted, "ids");
    }
    static std::string bundled_ids(const std::vector<std::string>& more = {}) {
        return field(generated(with(kFlags, more)), "ids");
    }

    const TestFolder folder_;
    const fs::path target_, head_;
};

TEST_F(Formats, ShardedSafetensors) {
    write_shards(target_, "model.safetensors", bundled("aerie-tiny"), safetensors_of);
    EXPECT_EQ(ids(), bundled_ids());
}

TEST_F(Formats, ShardedTorch) {
    write_shards(target_, "pytorch_model.bin", bundled("aerie-tiny"), torch_of);
    EXPECT_EQ(ids(), bundled_ids());
}

TEST_F(Formats, TorchTargetAndHeadOfBothFormats) {
    write_file(target_ / "pytorch_model.bin", torch_of(bundled("aerie-tiny")));
    EXPECT_EQ(ids(), bundled_ids());
    fs::remove(head_ / "model.safetensors");
    write_file(head_ / "pytorch_model.bin", torch_of(bundled("aerie-tiny-eagle")));
    EXPECT_EQ(ids(), bundled_ids());
}

TEST_F(Formats, HeadWithoutBias) {
    write_file(target_ / "model.safetensors", safetensors_of(bundled("aerie-tiny")));
    std::vector<Stored> head = bundled("aerie-tiny-eagle");
    EXPECT_EQ(std::erase_if(head, [](const Stored& t) { return t.name == "fc.bias"; }), 1u);
    write_file(head_ / "model.safetensors", safetensors_of(head));
    EXPECT_EQ(ids(), bundled_ids());
}

TEST_F(Formats, WeightsStoredInOtherTypes) {
    for (DType type : {DType::F32, DType::BF16}) {
        std::vector<Stored> target = bundled("aerie-tiny");
        for (Stored& tensor : target)
            if (tensor.shape.size() == 2) tensor = tensor.as(type);
        write_file(target_ / "model.safetensors", safetensors_of(target));
        EXPECT_EQ(ids(), bundled_ids({"--weights", name(type)}));
    }
}

TEST_F(Formats, TypesMayDifferInsideAModel) {
    std::vector<Stored> target = bundled("aerie-tiny");
    for (Stored& tensor : target)
        for (const char* part : {"k_proj", "up_proj", "1.self_attn.o_proj", "lm_head"})
            if (tensor.name.find(part) != std::string::npos) tensor = tensor.as(DType::F32);
    write_file(target_ / "model.safetensors", safetensors_of(target));
    EXPECT_EQ(ids({"--weights", "f32"}), bundled_ids({"--weights", "f32"}));
    // Each part keeps its type; on the CPU both types give the same products of the same numbers.
    EXPECT_EQ(ids({"--device", "cpu"}), bundled_ids({"--device", "cpu"}));
    const Json info = Json::parse(run({"info", "-m", target_.string(), "--json"}).out, "info");
    const Json& types = *info.find("matrix_bytes")->find("target");
    EXPECT_EQ(types.find("f32")->number(), 4 * (6 * (128 + 704) * 256 + 256 * 256 + 4096 * 256));
    EXPECT_GT(types.find("f16")->number(), 0);
}

TEST_F(Formats, TiedEmbeddings) {
    std::vector<Stored> target = bundled("aerie-tiny");
    std::string embedding;
    for (const Stored& tensor : target)
        if (tensor.name == "model.embed_tokens.weight") embedding = tensor.data;
    for (Stored& tensor : target)
        if (tensor.name == "lm_head.weight") tensor.data = embedding;
    write_file(target_ / "model.safetensors", safetensors_of(target));
    const auto flags = with(with({"-m", target_.string()}, kFlags), {"--draft", "none"});
    const std::string untied = field(generated(flags), "ids");
    std::erase_if(target, [](const Stored& tensor) { return tensor.name == "lm_head.weight"; });
    write_file(target_ / "model.safetensors", safetensors_of(target));
    std::string config = read_text(target_ / "config.json", 1 << 20);
    const std::string flag = "\"tie_word_embeddings\": false";
    ASSERT_NE(config.find(flag), std::string::npos);
    write_file(target_ / "config.json",
               config.replace(config.find(flag), flag.size(), "\"tie_word_embeddings\": true"));
    EXPECT_EQ(field(generated(flags), "ids"), untied);
}

// Random models of unusual shapes run, and drafting does not change their texts.
class Shapes : public testing::TestWithParam<ModelConfig> {};

TEST_P(Shapes, RunWithAndWithoutDrafting) {
    const TestFolder folder;
    const fs::path model = copy_without_weights("aerie-tiny", folder.path() / "model");
    write_toy_model(model, GetParam(), DType::F16, 0.1f, 3);
    const std::vector<std::string> flags = {"-m",  model.string(), "-p", "x",  "-n",
                                            "200", "--temp",       "1",  "-s", "3"};
    const Json plain = generated(with(flags, {"--draft", "none"}));
    for (const char* draft : {"chain", "eagle1", "eagle2"})
        EXPECT_EQ(field(generated(with(flags, {"--draft", draft})), "ids"), field(plain, "ids"));
}

ModelConfig shape(int hidden, AttentionShape attention, int vocab) {
    ModelConfig config;
    config.hidden = hidden;
    config.intermediate = 40;
    config.layers = 2;
    config.vocab = vocab;
    config.context = 300;
    config.attention = attention;
    return config;
}

INSTANTIATE_TEST_SUITE_P(Unusual, Shapes,
                         testing::Values(shape(48, {2, 1, 64}, 4096),    // wide heads
                                         shape(100, {3, 3, 16}, 4096),   // odd hidden size
                                         shape(32, {6, 2, 48}, 4096),    // grouped
                                         shape(32, {2, 1, 16}, 5000)));  // padded vocabulary

}  // namespace
}  // namespace aerie::test
