// Names of tensors and the order of rotary rows: a GGUF file against the same model of Hugging
// Face.
#include "io/gguf/names.h"

#include <algorithm>
#include <map>

#include "io/crc32.h"
#include "io/damage.h"
#include "io/gguf/rotary.h"
#include "io/gguf_golden.h"

namespace aerie {
namespace {

using test::error_of;

using Shapes = std::map<std::string, std::vector<int64_t>>;

// The tensors of a file by Hugging Face's names, with their shapes. Fails for an unknown name.
Shapes mapped(const Json& file) {
    const auto architecture = find_architecture(
        *file.find("metadata")->find("general.architecture")->find("value")->string());
    Shapes shapes;
    for (const auto& [name, tensor] : *file.find("tensors")->object()) {
        const auto there = hugging_face_name(architecture.value(), name);
        if (!there) {
            ADD_FAILURE() << name;
            continue;
        }
        std::vector<int64_t> shape = test::integers_of(*tensor.find("shape"));
        std::reverse(shape.begin(), shape.end());
        if (there->role == GgufRole::Experts) {
            const std::vector<int64_t> part(shape.begin() + 1, shape.end());
            for (int64_t i = 0; i < shape[0]; ++i) shapes[there->of_expert(i)] = part;
        } else if (there->role != GgufRole::Factors) {
            shapes[there->name] = shape;
        }
    }
    return shapes;
}

TEST(GgufNames, EveryTensorOfRealFilesHasOne) {
    const Json heads = test::gguf_json("heads.json");
    for (const auto& [file, expected] : *heads.object()) {
        // Later pieces of a model have no architecture.
        if (!expected.find("metadata")->find("general.architecture")) continue;
        SCOPED_TRACE(file);
        EXPECT_GE(mapped(expected).size(), 8u);
    }
}

TEST(GgufNames, MixtralIsItsTwin) {
    const Json heads = test::gguf_json("heads.json");
    const Json twin = test::gguf_json("mixtral_twin.json");
    Shapes expected;
    for (const auto& [name, shape] : *twin.find("shapes")->object())
        expected[name] = test::integers_of(shape);
    EXPECT_EQ(expected.size(), 65u);
    EXPECT_EQ(mapped(*heads.find("mixtral-F16.gguf")), expected);
}

uint32_t twin_crc(const Json& twin, const std::string& name) {
    int64_t crc = -1;
    EXPECT_TRUE(twin.find("crc32")->find(name)->integer(crc));
    return uint32_t(crc);
}

std::vector<std::byte> bytes_of(const Gguf& model, const GgufTensor& tensor) {
    std::vector<std::byte> bytes(tensor.data.size_bytes);
    model.read(tensor, 0, bytes);
    return bytes;
}

std::vector<std::byte> in_halves(const std::vector<std::byte>& pairs, size_t head_dim,
                                 size_t row_bytes) {
    std::vector<std::byte> halves(pairs.size());
    for (size_t row = 0; row < pairs.size() / row_bytes; ++row)
        std::copy_n(&pairs[row_in_pairs(row, head_dim) * row_bytes], row_bytes,
                    &halves[row * row_bytes]);
    return halves;
}

// The twin is f16, too, so its bytes must be the same once the rows are in order.
TEST(GgufNames, RotaryRowsAreThoseOfTheTwin) {
    constexpr size_t kHeadDim = 16;
    const Json twin = test::gguf_json("mixtral_twin.json");
    const Gguf model = Gguf::open(test::gguf_dir() / "tensors.gguf");
    for (const std::string name : {"blk.0.attn_q.weight", "blk.0.attn_k.weight"}) {
        const auto there = hugging_face_name(GgufArchitecture::Llama, name).value();
        EXPECT_EQ(there.role, GgufRole::Rotary);
        const GgufTensor& tensor = *model.find("mixtral-F16/" + name);
        const std::vector<std::byte> pairs = bytes_of(model, tensor);
        const std::vector<std::byte> halves = in_halves(pairs, kHeadDim, tensor.row_bytes());
        EXPECT_EQ(crc32(0, halves), twin_crc(twin, there.name)) << name;
        EXPECT_NE(crc32(0, pairs), twin_crc(twin, there.name)) << "nothing was to do";
    }
}

TEST(GgufNames, ExpertsAreThoseOfTheTwin) {
    const Json twin = test::gguf_json("mixtral_twin.json");
    const Gguf model = Gguf::open(test::gguf_dir() / "tensors.gguf");
    const std::string name = "blk.1.ffn_down_exps.weight";
    const auto there = hugging_face_name(GgufArchitecture::Llama, name).value();
    EXPECT_EQ(there.role, GgufRole::Experts);
    const GgufTensor& stacked = *model.find("mixtral-F16/" + name);
    ASSERT_EQ(stacked.shape_text(), "[8, 64, 48]");
    for (int64_t i = 0; i < stacked.shape[0]; ++i) {
        const GgufTensor expert = part_of(stacked, i, there.of_expert(i));
        EXPECT_EQ(expert.shape_text(), "[64, 48]");
        EXPECT_EQ(crc32(0, bytes_of(model, expert)), twin_crc(twin, expert.name)) << expert.name;
    }
}

TEST(GgufRotary, PairsBecomeHalvesAndBack) {
    const std::string pairs = "aAbBcCdDeEfF";  // heads of 6 one-byte rows: a pairs with A
    std::string halves;
    for (size_t row = 0; row < pairs.size(); ++row) halves += pairs[row_in_pairs(row, 6)];
    EXPECT_EQ(halves, "abcABCdefDEF");
    for (const size_t head_dim : {2, 6, 12})
        for (size_t row = 0; row < pairs.size(); ++row)
            EXPECT_EQ(row_in_halves(row_in_pairs(row, head_dim), head_dim), row);
}

TEST(GgufNames, DependOnTheArchitecture) {
    const auto name = [](const char* architecture, const char* gguf) {
        const auto found = hugging_face_name(find_architecture(architecture).value(), gguf);
        return found ? found->name + (found->ending.empty() ? "" : "*" + found->ending) : "";
    };
    EXPECT_EQ(name("llama", "blk.10.attn_q.weight"), "model.layers.10.self_attn.q_proj.weight");
    EXPECT_EQ(name("qwen2", "blk.0.attn_q.bias"), "model.layers.0.self_attn.q_proj.bias");
    EXPECT_EQ(name("qwen3", "blk.0.attn_k_norm.weight"), "model.layers.0.self_attn.k_norm.weight");
    EXPECT_EQ(name("qwen2", "blk.0.attn_k_norm.weight"), "");
    EXPECT_EQ(name("llama", "blk.3.ffn_up_exps.weight"),
              "model.layers.3.block_sparse_moe.experts.*.w3.weight");
    EXPECT_EQ(name("llama", "blk.3.ffn_gate.7.weight"),
              "model.layers.3.block_sparse_moe.experts.7.w1.weight");
    EXPECT_EQ(name("qwen3moe", "blk.3.ffn_down_exps.weight"),
              "model.layers.3.mlp.experts.*.down_proj.weight");
    EXPECT_EQ(name("qwen3moe", "blk.3.ffn_gate_inp.weight"), "model.layers.3.mlp.gate.weight");
    EXPECT_EQ(name("qwen3moe", "blk.3.ffn_gate.weight"), "model.layers.3.mlp.gate_proj.weight");
    EXPECT_EQ(name("qwen3", "output.weight"), "lm_head.weight");
    EXPECT_EQ(hugging_face_name(GgufArchitecture::Llama, "rope_freqs.weight")->role,
              GgufRole::Factors);
    EXPECT_EQ(hugging_face_name(GgufArchitecture::Qwen2, "blk.0.attn_q.weight")->role,
              GgufRole::Weight);
    EXPECT_FALSE(find_architecture("gpt2"));
}

TEST(GgufNames, RefusesWhatIsNoName) {
    for (const char* name :
         {"", ".", ".weight", "output", "output.", "output.weigh", "output.bias",
          "output.weight.weight", "xoutput.weight", "blk..attn_q.weight", "blk.-1.attn_q.weight",
          "blk.01.attn_q.weight", "blk.1.attn_q", "blk.123456.attn_q.weight",
          "blk.1x.attn_q.weight", "blk.1.attn_norm.bias", "blk.1.ffn_gate..weight", "blk.1"})
        EXPECT_FALSE(hugging_face_name(GgufArchitecture::Llama, name)) << name;
}

}  // namespace
}  // namespace aerie
