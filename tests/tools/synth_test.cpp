// `aerie synth` writes folders that the other commands take, complete or not at all.
#include <sys/resource.h>

#include <csignal>

#include "io/checkpoint.h"
#include "io/damage.h"
#include "tools/generated.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kSmall = {
    "synth",          "--like", "tinyllama-1.1b", "--hidden", "256", "--heads", "4",
    "--intermediate", "512",    "--layers",       "2",        "-o",  "made"};

size_t entries(const TestFolder& folder) {
    fs::directory_iterator all(folder.path());
    return size_t(std::distance(begin(all), end(all)));
}

TEST(Synth, WritesAModelAndItsHead) {
    const TestFolder folder;
    const Surroundings here{.folder = folder.path()};
    const Outcome made = run(kSmall, here);
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_EQ(made.err, "");
    EXPECT_NE(made.out.find("made and made-eagle"), std::string::npos) << made.out;
    EXPECT_EQ(entries(folder), 2u);
    const Json info = Json::parse(run({"info", "made", "--json"}, here).out, "stdout");
    EXPECT_EQ(field(*info.find("target"), "vocabulary"), "32000");
    EXPECT_EQ(field(*info.find("target"), "types"), "\"f16\"");
    EXPECT_EQ(field(*info.find("head"), "hidden"), "256");
    const std::vector<std::string> flags = {"-m", "made", "-p", "The", "-n", "9", "--temp", "0"};
    EXPECT_EQ(field(generated(flags, here), "ids"),
              field(generated(with(flags, {"--draft", "none"}), here), "ids"));
}

// The head's vocabulary is a part of the target's.
TEST(Synth, WritesAnEagle3Head) {
    const TestFolder folder;
    const Surroundings here{.folder = folder.path()};
    const Outcome made = run(with(kSmall, {"--vocab", "40000", "--head", "eagle3"}), here);
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_NE(made.out.find("made and made-eagle3"), std::string::npos) << made.out;
    EXPECT_EQ(entries(folder), 2u);
    const Checkpoint head = Checkpoint::open(folder.path() / "made-eagle3");
    ASSERT_TRUE(head.find("d2t"));
    EXPECT_EQ(head.find("d2t")->shape, std::vector<int64_t>{32000});
    EXPECT_EQ(head.find("t2d")->shape, std::vector<int64_t>{40000});
    const std::vector<std::string> flags = {"-m", "made", "-p", "The", "-n", "9", "--temp", "0"};
    const Json drafted = generated(with(flags, {"--tree", "20,3,5", "--draft", "eagle3"}), here);
    EXPECT_EQ(field(drafted, "ids"),
              field(generated(with(flags, {"--draft", "none"}), here), "ids"));
    EXPECT_EQ(field(*drafted.find("stats"), "mean_nodes"), "20.0");
}

TEST(Synth, SameSeedSameWeights) {
    const TestFolder folder;
    const Surroundings here{.folder = folder.path()};
    const auto bytes = [&](const std::string& name, const std::vector<std::string>& flags) {
        EXPECT_EQ(run(with(with(kSmall, flags), {"-q"}), here).exit_code, 0);
        fs::rename(folder.path() / "made", folder.path() / name);
        fs::remove_all(folder.path() / "made-eagle");
        const Checkpoint checkpoint = Checkpoint::open(folder.path() / name);
        const NamedTensor& tensor = *checkpoint.find("lm_head.weight");
        const auto data = checkpoint.read(tensor);
        return std::string(reinterpret_cast<const char*>(data.get()), tensor.data.size_bytes);
    };
    const std::string first = bytes("a", {});
    EXPECT_EQ(first, bytes("b", {"--seed", "1"}));
    EXPECT_NE(first, bytes("c", {"--seed", "2"}));
    EXPECT_EQ(2 * first.size(), bytes("d", {"--weights", "f32"}).size());
}

TEST(Synth, SaysThatASmallVocabularyHasNoTokenizer) {
    const TestFolder folder;
    const Outcome made = run(with(kSmall, {"--vocab", "1000"}), {.folder = folder.path()});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_NE(made.out.find("no tokenizer"), std::string::npos) << made.out;
    EXPECT_FALSE(fs::exists(folder.path() / "made/tokenizer.model"));
}

TEST(Synth, NeverOverwrites) {
    for (const char* name : {"made", "made-eagle"}) {
        const TestFolder folder;
        fs::create_directory(folder.path() / name);
        const Outcome refused = run(kSmall, {.folder = folder.path()});
        EXPECT_EQ(refused.exit_code, 1);
        EXPECT_NE(refused.err.find(name + std::string(": exists already")), std::string::npos);
        EXPECT_EQ(entries(folder), 1u);
    }
}

TEST(Synth, LeavesNothingBehindWhenItFails) {
    const TestFolder folder;
    const Surroundings small_disk{.folder = folder.path(), .before = [] {
                                      const rlimit limit{6 << 20, 6 << 20};  // for one file
                                      ::setrlimit(RLIMIT_FSIZE, &limit);
                                  }};
    const Outcome failed = run(kSmall, small_disk);
    EXPECT_EQ(failed.exit_code, 1);
    EXPECT_NE(failed.err.find("model.safetensors: cannot be written: File too large"),
              std::string::npos)
        << failed.err;
    EXPECT_EQ(entries(folder), 0u);
    const Outcome huge = run(
        {"synth", "--like", "llama-2-70b", "--layers", "1000", "--weights", "f32", "-o", "made"},
        {.folder = folder.path()});
    EXPECT_EQ(huge.exit_code, 1);
    EXPECT_NE(huge.err.find("MiB free"), std::string::npos) << huge.err;
    EXPECT_EQ(entries(folder), 0u);
}

// Waits until the model and its head have been begun.
void wait_for_both(const TestFolder& folder) {
    for (int tries = 0; entries(folder) < 2 && tries < 60'000; ++tries) ::usleep(1000);
}

const std::vector<std::string> kLarge = {"synth", "--like", "tinyllama-1.1b", "-o", "made"};

TEST(Synth, LeavesNothingBehindWhenInterrupted) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        const TestFolder folder;
        Program program(kLarge, {.folder = folder.path()});
        wait_for_both(folder);
        program.send(signal);
        EXPECT_EQ(program.wait().exit_code, 128 + signal);
        EXPECT_EQ(entries(folder), 0u);
    }
}

TEST(Synth, RemovesWhatAKilledRunLeft) {
    const TestFolder folder;
    {
        Program program(kLarge, {.folder = folder.path()});
        wait_for_both(folder);
        program.send(SIGKILL);
        program.wait();
    }
    EXPECT_EQ(entries(folder), 2u) << "parts of it";
    EXPECT_EQ(run(kSmall, {.folder = folder.path()}).exit_code, 0);
    EXPECT_EQ(entries(folder), 2u) << "the model and its head alone";
}

}  // namespace
}  // namespace aerie::test
