// Weights with a few NaN or infinities: the program ends decently, whatever it says.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "io/damage.h"
#include "paths.h"
#include "tools/write_model.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

TEST(DamagedWeights, NeverCrash) {
    const TestFolder folder;
    const fs::path model = copy_without_weights("aerie-tiny", folder.path() / "model");
    const std::vector<Stored> good = Stored::all_of(models_dir() / "aerie-tiny");
    std::minstd_rand random(5);
    for (const uint16_t value : {0x7E00, 0x7C00, 0xFC00}) {  // NaN, infinity, -infinity
        for (const char* part :
             {"embed_tokens", "lm_head", "model.norm", "2.self_attn.k_proj", "5.mlp.down_proj"}) {
            std::vector<Stored> tensors = good;
            for (Stored& tensor : tensors)
                for (int i = 0; i < 3 && tensor.name.find(part) != std::string::npos; ++i)
                    std::memcpy(&tensor.data[random() % (tensor.data.size() / 2) * 2], &value, 2);
            write_file(model / "model.safetensors", safetensors_of(tensors));
            for (const char* temperature : {"0", "1"}) {
                const Outcome outcome = run({"generate", "-m", model, "--head", "aerie-tiny-eagle",
                                             "-p", "The", "-n", "6", "-q", "--temp", temperature});
                EXPECT_EQ(outcome.signal, 0);
                if (outcome.exit_code == 0) continue;
                EXPECT_EQ(outcome.exit_code, 1);
                EXPECT_NE(outcome.err.find("weights are damaged"), std::string::npos)
                    << outcome.err;
                EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
            }
        }
    }
}

TEST(DamagedWeights, OfAHeadChangeNoText) {
    const TestFolder folder;
    const fs::path head = copy_without_weights("aerie-tiny-eagle", folder.path() / "head");
    std::vector<Stored> tensors = Stored::all_of(models_dir() / "aerie-tiny-eagle");
    const std::vector<std::string> flags = {"-p", "The", "-n", "24"};
    const std::string plain = field(generated(with(flags, {"--draft", "none"})), "ids");
    for (Stored& tensor : tensors) std::fill(tensor.data.begin(), tensor.data.end(), '\xFF');
    write_file(head / "model.safetensors", safetensors_of(tensors));
    for (const char* draft : {"chain", "eagle1", "eagle2"})
        EXPECT_EQ(field(generated(with(flags, {"--draft", draft, "--head", head})), "ids"), plain);
}

}  // namespace
}  // namespace aerie::test
