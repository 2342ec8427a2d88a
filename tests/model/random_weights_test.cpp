// Random weights: the same from any offset, and of the right size and spread.
#include "model/make/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "io/damage.h"
#include "io/safetensors_writer.h"
#include "model/make/shapes.h"

namespace aerie {
namespace {

using test::error_of;
using test::TestFolder;

std::vector<std::byte> filled(const RandomWeights& weights, const std::string& name, int64_t first,
                              int64_t count) {
    std::vector<std::byte> bytes(size_t(count) * size_bytes(weights.type()));
    weights.fill(name, first, bytes);
    return bytes;
}

float value(const std::vector<std::byte>& bytes, DType type, size_t i) {
    float f32 = 0;
    uint16_t half = 0;
    if (type == DType::F32) {
        std::memcpy(&f32, &bytes[4 * i], 4);
        return f32;
    }
    std::memcpy(&half, &bytes[2 * i], 2);
    return type == DType::F16 ? f16_to_f32(half) : bf16_to_f32(half);
}

int64_t parameters(const std::vector<TensorShape>& tensors) {
    int64_t count = 0;
    for (const TensorShape& tensor : tensors) count += tensor.elements();
    return count;
}

TEST(RandomWeights, AreAFunctionOfSeedNameAndPlace) {
    constexpr int64_t kCount = 3'000'010;  // several parts of work, and no multiple of a word
    for (const DType type : {DType::F32, DType::F16, DType::BF16}) {
        const RandomWeights weights(type, 7);
        const auto whole = filled(weights, "a.weight", 0, kCount);
        EXPECT_EQ(whole, filled(RandomWeights(type, 7), "a.weight", 0, kCount));
        EXPECT_NE(whole, filled(RandomWeights(type, 8), "a.weight", 0, kCount));
        EXPECT_NE(whole, filled(weights, "b.weight", 0, kCount));
        auto joined = filled(weights, "a.weight", 0, 1'000'004);
        const auto rest = filled(weights, "a.weight", 1'000'004, kCount - 1'000'004);
        joined.insert(joined.end(), rest.begin(), rest.end());
        EXPECT_EQ(whole, joined) << name(type);
    }
}

TEST(RandomWeights, AreNormalInEveryType) {
    constexpr int64_t kCount = 1 << 20;
    for (const DType type : {DType::F32, DType::F16, DType::BF16}) {
        const auto bytes = filled(RandomWeights(type, 1), "x.weight", 0, kCount);
        double sum = 0, squares = 0, neighbours = 0, fourth = 0;
        for (size_t i = 0; i < kCount; ++i) {
            const double x = value(bytes, type, i) / 0.02;
            sum += x;
            squares += x * x;
            fourth += x * x * x * x;
            if (i > 0) neighbours += x * value(bytes, type, i - 1) / 0.02;
        }
        // Standard errors of these means are 0.001, 0.0014, 0.0096 and 0.001.
        EXPECT_NEAR(sum / kCount, 0, 0.006) << name(type);
        EXPECT_NEAR(squares / kCount, 1, 0.01) << name(type);
        EXPECT_NEAR(fourth / kCount, 3, 0.06) << name(type);
        EXPECT_NEAR(neighbours / kCount, 0, 0.006) << name(type);
    }
}

TEST(RandomWeights, OfNormsAreOne) {
    for (const DType type : {DType::F32, DType::F16, DType::BF16}) {
        const auto bytes = filled(RandomWeights(type, 1), "model.norm.weight", 0, 5);
        for (size_t i = 0; i < 5; ++i) EXPECT_EQ(value(bytes, type, i), 1);
    }
}

TEST(RandomCheckpoint, MakesWhatIsRead) {
    const ModelConfig config = model_shape("tinyllama-1.1b");
    const Checkpoint checkpoint =
        random_checkpoint("tinyllama", target_tensors(config), DType::F16, 3);
    EXPECT_EQ(checkpoint.size_bytes(), size_t(2 * parameters(target_tensors(config))));
    const std::string name = "model.layers.21.mlp.up_proj.weight";
    const int64_t shape[] = {5632, 2048};
    const auto data = checkpoint.read(checkpoint.get(name, shape));
    const auto expected = filled(RandomWeights(DType::F16, 3), name, 0, 5632 * 2048);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), data.get()));
    const int64_t wrong[] = {2048, 5632};
    EXPECT_NE(error_of([&] { checkpoint.get(name, wrong); }).find("[2048, 5632]"),
              std::string::npos);
}

TEST(Shapes, HaveTheParametersOfTheirModels) {
    const auto billions = [](const char* name) {
        return std::round(double(parameters(target_tensors(model_shape(name)))) / 1e6) / 1e3;
    };
    EXPECT_EQ(billions("tinyllama-1.1b"), 1.100);
    EXPECT_EQ(billions("llama-2-7b"), 6.738);
    EXPECT_EQ(billions("llama-2-13b"), 13.016);
    EXPECT_EQ(billions("llama-2-70b"), 68.977);
    EXPECT_EQ(billions("llama-3.1-8b"), 8.030);
    EXPECT_EQ(billions("llama-3.2-1b"), 1.236);
    EXPECT_EQ(billions("llama-3.2-3b"), 3.213);
    EXPECT_EQ(billions("llama-3.3-70b"), 70.554);
    EXPECT_EQ(billions("mistral-7b"), 7.248);
    EXPECT_EQ(billions("qwen2.5-7b"), 7.616);
    EXPECT_EQ(billions("qwen3-8b"), 8.191);
    EXPECT_EQ(billions("mixtral-8x7b"), 46.703);
    EXPECT_EQ(billions("qwen3-30b-a3b"), 30.532);
}

TEST(Shapes, AreChangedByHand) {
    ShapeChanges changes;
    changes.hidden = 1024;
    changes.heads = 16;
    const ModelConfig config = model_shape("llama-3.1-8b", changes);
    EXPECT_EQ(config.attention.head_dim, 64);
    EXPECT_EQ(config.attention.kv_heads, 16);
    EXPECT_EQ(config.layers, 32);
    changes.kv_heads = 5;
    EXPECT_NE(error_of([&] { model_shape("llama-3.1-8b", changes); }).find("num_key_value_heads"),
              std::string::npos);
    EXPECT_NE(error_of([] { model_shape("llama-4"); }).find("tinyllama-1.1b"), std::string::npos);
}

TEST(SafetensorsWriter, WritesOneFileOrShards) {
    std::vector<NamedTensor> tensors;
    for (int i = 0; i < 5; ++i)
        tensors.push_back({"layer." + std::to_string(i) + ".weight", DType::F16, {30, 10}, {}});
    const RandomWeights weights(DType::F16, 5);
    const auto source = [&](const NamedTensor& tensor, size_t offset, std::span<std::byte> out) {
        weights.fill(tensor.name, int64_t(offset / 2), out);
    };
    for (const auto& [shard_bytes, files] : {std::pair(3000, 1), {1200, 4}, {1, 6}}) {
        const TestFolder folder;
        write_safetensors(folder.path(), tensors, size_t(shard_bytes), source);
        std::filesystem::directory_iterator entries(folder.path());
        EXPECT_EQ(std::distance(begin(entries), end(entries)), files) << "the index is one";
        const Checkpoint read = Checkpoint::open(folder.path());
        EXPECT_EQ(read.tensors().size(), 5u);
        const int64_t shape[] = {30, 10};
        for (const NamedTensor& tensor : tensors) {
            const auto data = read.read(read.get(tensor.name, shape));
            const auto expected = filled(weights, tensor.name, 0, 300);
            EXPECT_TRUE(std::equal(expected.begin(), expected.end(), data.get()));
        }
    }
}

}  // namespace
}  // namespace aerie
