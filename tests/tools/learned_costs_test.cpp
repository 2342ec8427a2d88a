// Costs that a start measures on this device are kept for the next start.
#include <gtest/gtest.h>

#include "io/damage.h"
#include "io/input_file.h"
#include "tools/generated.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kShort = {"-p", "USER: What is 3 times 14? ASSISTANT:", "-n", "24"};

// The file of costs that starts leave in `cache`. Costs of a busy moment are not kept, and the next
// start measures again.
fs::path kept_costs(const fs::path& cache, const Surroundings& around) {
    constexpr int kMaxStarts = 20;
    for (int i = 0; i < kMaxStarts; ++i) {
        generated(kShort, around);
        std::error_code ignored;
        for (const auto& entry : fs::directory_iterator(cache / "aerie", ignored))
            if (entry.path().filename().string().starts_with("costs-")) return entry.path();
    }
    ADD_FAILURE() << kMaxStarts << " starts on a machine too busy to be measured";
    return {};
}

TEST(LearnedCosts, RemembersWhatItMeasured) {
    const TestFolder folder;
    const Surroundings here{.variables = {{"XDG_CACHE_HOME", folder.path().string()}}};
    const std::string ids = field(generated(kShort, here), "ids");
    const auto file = kept_costs(folder.path(), here);
    const std::string costs = read_text(file, 1 << 16);
    EXPECT_NE(costs.find("aerie-costs-3"), std::string::npos) << costs;
    generated(kShort, here);
    EXPECT_EQ(read_text(file, 1 << 16), costs) << "measured once";
    std::ofstream(file) << costs.substr(0, 40);
    EXPECT_EQ(field(generated(kShort, here), "ids"), ids) << "damaged, so measured again";
    fs::remove(file);
    kept_costs(folder.path(), here);
    // A cache that cannot be written is no error, and a fixed tree needs no costs.
    folder.write("file", "");
    const Surroundings closed{.variables = {{"XDG_CACHE_HOME", (folder.path() / "file").string()}}};
    EXPECT_EQ(field(generated(kShort, closed), "ids"), ids);
    const TestFolder other;
    generated(with(kShort, {"--tree", "60,6,10"}),
              {.variables = {{"XDG_CACHE_HOME", other.path().string()}}});
    EXPECT_TRUE(fs::is_empty(other.path()));
}

// The kept costs of levels are far from what the cycles see, as if a busy moment had spoilt them.
TEST(LearnedCosts, ForgetsWhatItMeasuredFarOff) {
    const TestFolder folder;
    const Surroundings here{.variables = {{"XDG_CACHE_HOME", folder.path().string()}}};
    const auto file = kept_costs(folder.path(), here);
    std::string costs = read_text(file, 1 << 16);
    const size_t levels = costs.find("\"level\":"), end = costs.find("]]", levels);
    costs.replace(levels, end - levels, "\"level\":[[1,1e-09],[10,1e-09");
    std::ofstream(file) << costs;
    generated(kShort, here);
    EXPECT_EQ(read_text(file, 1 << 16), costs) << "a few cycles do not say much";
    generated({"-p", "The", "-n", "400", "--temp", "0", "--ignore-eos"}, here);  // drafts on and on
    EXPECT_FALSE(fs::exists(file));
}

}  // namespace
}  // namespace aerie::test
