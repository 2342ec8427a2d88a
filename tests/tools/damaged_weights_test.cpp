// Weights with a few NaN or infinities are refused in one line.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "io/damage.h"
#include "paths.h"
#include "tools/write_model.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

// Packing to a quantised type removes NaN and would hide it.
TEST(DamagedWeights, AreRefusedByName) {
    const TestFolder folder;
    const fs::path model = copy_without_weights("aerie-tiny", folder.path() / "model");
    const std::vector<Stored> good = Stored::all_of(models_dir() / "aerie-tiny");
    std::minstd_rand random(5);
    for (const uint16_t value : {0x7E00, 0x7C00, 0xFC00}) {  // NaN, infinity, -infinity
        for (const char* part :
             {"embed_tokens", "lm_head", "model.norm", "2.self_attn.k_proj", "5.mlp.down_proj"}) {
            std::vector<Stored> tensors = good;
            for (Stored& tensor : tensors)
                if (tensor.name.find(part) != std::string::npos)
                    std::memcpy(&tensor.data[random() % (tensor.data.size() / 2) * 2], &value, 2);
            write_file(model / "model.safetensors", safetensors_of(tensors));
            for (const char* type : {"f16", "q8_0", "q4_0"}) {
                const Outcome outcome = run({"generate", "-m", model, "--head", "aerie-tiny-eagle",
                                             "-p", "The", "-n", "6", "-q", "--weights", type});
                EXPECT_EQ(outcome.signal, 0);
                EXPECT_EQ(outcome.exit_code, 1);
                for (const char* said : {part, "model.safetensors", "weights are damaged"})
                    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
                EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
            }
        }
    }
}

// The value is finite, but more than f16 holds: as f16 it would be infinite.
TEST(DamagedWeights, AreWhatATypeCannotHold) {
    const TestFolder folder;
    const fs::path model = copy_without_weights("aerie-tiny", folder.path() / "model");
    std::vector<Stored> tensors;
    for (const Stored& tensor : Stored::all_of(models_dir() / "aerie-tiny"))
        tensors.push_back(tensor.as(DType::F32));
    const float large = 70000;
    std::memcpy(&tensors.front().data[16], &large, 4);
    write_file(model / "model.safetensors", safetensors_of(tensors));
    const auto generate = [&](const char* type) {
        return run({"generate", "-m", model, "--draft", "none", "-p", "The", "-n", "2", "-q",
                    "--weights", type});
    };
    EXPECT_EQ(generate("f32").exit_code, 0);
    const Outcome outcome = generate("f16");
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.err.find(tensors.front().name), std::string::npos) << outcome.err;
}

TEST(DamagedWeights, OfAHead) {
    const TestFolder folder;
    const fs::path head = copy_without_weights("aerie-tiny-eagle", folder.path() / "head");
    std::vector<Stored> tensors = Stored::all_of(models_dir() / "aerie-tiny-eagle");
    const std::vector<std::string> flags = {"-p", "The", "-n", "24"};
    const std::string plain = field(generated(with(flags, {"--draft", "none"})), "ids");
    // The largest numbers that exist change no text.
    for (Stored& tensor : tensors)
        for (size_t i = 0; i < tensor.data.size(); ++i)
            tensor.data[i] = i % 2 == 0 ? '\xFF' : i % 4 == 1 ? '\x7B' : '\xFB';
    write_file(head / "model.safetensors", safetensors_of(tensors));
    for (const char* draft : {"chain", "eagle1", "eagle2"})
        EXPECT_EQ(field(generated(with(flags, {"--draft", draft, "--head", head})), "ids"), plain);
    // NaN is refused.
    tensors.back().data[1] = '\x7F';
    write_file(head / "model.safetensors", safetensors_of(tensors));
    const Outcome outcome = run({"generate", "-m", "aerie-tiny", "--head", head, "-p", "The"});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.err.find("weights are damaged"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace aerie::test
