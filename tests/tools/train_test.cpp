// `aerie train`: a head from texts and from prompts, stops and kills, and data that cannot be used.
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <set>
#include <sstream>
#include <thread>

#include "io/checkpoint.h"
#include "io/damage.h"
#include "io/input_file.h"
#include "tools/generated.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

// Forty short documents; some of them are held out.
std::string documents() {
    std::string text;
    for (int i = 0; i < 40; ++i)
        text += "{\"text\": \"Tom has " + std::to_string(3 + i) +
                " red apples. He gives two of them to Lily, and then he has " +
                std::to_string(1 + i) + " apples. Lily is very happy.\"}\n";
    return text;
}

std::vector<std::string> training(const std::string& head, const std::vector<std::string>& more) {
    return with({"train", "-m", "aerie-tiny", "-o", head, "--texts", "texts.jsonl", "--batch",
                 "128", "--ttt", "2", "--draft-vocab", "256", "-t", "2", "-q"},
                more);
}

class Train : public testing::Test {
  protected:
    Train() { folder_.write("texts.jsonl", documents()); }

    Outcome train(const std::vector<std::string>& more, const std::string& head = "head") {
        return run(training(head, more), here_);
    }
    std::string read(const std::string& file) {
        return read_text(folder_.path() / file, size_t(1) << 28);
    }
    // The parameters and moments in a state file; its first line has times.
    std::string parameters(const std::string& folder) {
        const std::string state = read(folder + "/training/state.bin");
        return state.substr(state.find('\n'));
    }
    void expect_refused(const Outcome& outcome, const std::string& why, int exit_code = 1) {
        EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
        EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }

    TestFolder folder_;
    const Surroundings here_{.folder = folder_.path()};
};

TEST_F(Train, AHeadThatDrafts) {
    for (const char* kind : {"eagle3", "eagle2"}) {
        const Outcome made = train({"--kind", kind, "--steps", "6"}, kind);
        if (made.err.find("BLAS") != std::string::npos) GTEST_SKIP() << "SKIPPED: " << made.err;
        ASSERT_EQ(made.exit_code, 0) << made.err;
        EXPECT_EQ(made.err, "");
        EXPECT_NE(made.out.find("held-out tau"), std::string::npos) << made.out;
        EXPECT_NE(read(std::string(kind) + "/README.md").find("texts.jsonl"), std::string::npos);
        const std::vector<std::string> flags = {"-m", "aerie-tiny", "-p", "Tom has", "-n", "24"};
        const Json drafted = generated(with(flags, {"--head", kind}), here_);
        EXPECT_EQ(field(drafted, "ids"),
                  field(generated(with(flags, {"--draft", "none"}), here_), "ids"));
    }
}

TEST_F(Train, AnswersPromptsOnce) {
    std::string prompts;
    for (int i = 0; i < 24; ++i)
        prompts += R"({"id": "p)" + std::to_string(i) + R"(", "prompt": "Tom has )" +
                   std::to_string(i) + " apples\"}\n";
    folder_.write("prompts.jsonl", prompts);
    const std::vector<std::string> flags = {"--prompts", "prompts.jsonl", "-n",
                                            "12",        "--steps",       "2"};
    const Outcome made = train(flags);
    if (made.err.find("BLAS") != std::string::npos) GTEST_SKIP() << "SKIPPED: " << made.err;
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const std::string texts = read("head/training/texts.jsonl");
    EXPECT_EQ(std::count(texts.begin(), texts.end(), '\n'), 1 + 40 + 24);
    ASSERT_EQ(
        train({"--prompts", "prompts.jsonl", "-n", "12", "--resume", "--steps", "3"}).exit_code, 0);
    EXPECT_EQ(read("head/training/texts.jsonl"), texts);
}

// Parts of a message and their texts in one piece are the same, and so are a file and stdin.
TEST_F(Train, TakesPartsAndStdin) {
    std::string parts, whole;
    for (int i = 0; i < 3; ++i) {
        const std::string number = std::to_string(i);
        parts +=
            R"({"id": ")" + number +
            R"(", "messages": [{"role": "user", "content": [{"type": "text", "text": "Tom has "},)"
            R"( {"type": "text", "text": ")" +
            number + " apples\"}]}]}\n";
        whole += R"({"id": ")" + number +
                 R"(", "messages": [{"role": "user", "content": "Tom has )" + number +
                 " apples\"}]}\n";
    }
    folder_.write("parts.jsonl", parts);
    const std::vector<std::string> flags = {"-n", "4", "--steps", "1"};
    const Outcome made = train(with(flags, {"--prompts", "parts.jsonl"}), "parts");
    if (made.err.find("BLAS") != std::string::npos) GTEST_SKIP() << "SKIPPED: " << made.err;
    ASSERT_EQ(made.exit_code, 0) << made.err;
    Surroundings fed = here_;
    fed.input = whole;
    ASSERT_EQ(run(training("whole", with(flags, {"--prompts", "-"})), fed).exit_code, 0);
    // Names contain a hash of the line, which differs.
    const auto ids = [&](const std::string& folder) {
        std::multiset<std::string> found;
        std::istringstream lines(read(folder + "/training/texts.jsonl"));
        for (std::string line; std::getline(lines, line);)
            if (const size_t at = line.find("\"ids\""); at != std::string::npos)
                found.insert(line.substr(at));
        return found;
    };
    EXPECT_EQ(ids("parts"), ids("whole"));
    EXPECT_EQ(ids("parts").size(), 43u);
}

// Stopped and killed wherever it is, a training makes the head that it makes at one go.
TEST_F(Train, KillsChangeNothing) {
    const std::vector<std::string> steps = {"--steps", "12"};
    const Outcome whole = train(steps, "whole");
    if (whole.err.find("BLAS") != std::string::npos) GTEST_SKIP() << "SKIPPED: " << whole.err;
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    int stops = 0;
    for (int i = 0; i < 12; ++i) {
        Program program(training("stopped", with(steps, {"--resume"})), here_);
        std::this_thread::sleep_for(std::chrono::milliseconds(150 + 90 * i));
        program.send(i % 3 == 0 ? SIGKILL : SIGINT);
        stops += program.wait().exit_code != 0;
    }
    EXPECT_GT(stops, 0);
    const Outcome end = train(with(steps, {"--resume"}), "stopped");
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_EQ(parameters("stopped"), parameters("whole"));
    EXPECT_EQ(read("stopped/model.safetensors"), read("whole/model.safetensors"));
}

// The answers, too, are those that they would have been.
TEST_F(Train, KillsWhileAnsweringChangeNothing) {
    std::string prompts;
    for (int i = 0; i < 48; ++i)
        prompts += R"({"prompt": "Tom has )" + std::to_string(i) + " apples\"}\n";
    folder_.write("prompts.jsonl", prompts);
    const std::vector<std::string> flags = {"--prompts", "prompts.jsonl", "-n", "150", "--temp",
                                            "1",         "--steps",       "2"};
    const Outcome whole = train(flags, "whole");
    if (whole.err.find("BLAS") != std::string::npos) GTEST_SKIP() << "SKIPPED: " << whole.err;
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    int stops = 0;
    for (int i = 0; i < 6; ++i) {
        Program program(training("stopped", with(flags, {"--resume"})), here_);
        std::this_thread::sleep_for(std::chrono::milliseconds(200 + 60 * i));
        program.send(i % 2 ? SIGKILL : SIGINT);
        stops += program.wait().exit_code != 0;
    }
    EXPECT_GT(stops, 0);
    ASSERT_EQ(train(with(flags, {"--resume"}), "stopped").exit_code, 0);
    EXPECT_EQ(read("stopped/model.safetensors"), read("whole/model.safetensors"));
}

TEST_F(Train, BadDataIsRefusedInOneLine) {
    const std::vector<std::string> steps = {"--steps", "2"};
    const Outcome first = train(steps);
    if (first.err.find("BLAS") != std::string::npos) GTEST_SKIP() << "SKIPPED: " << first.err;
    ASSERT_EQ(first.exit_code, 0) << first.err;
    expect_refused(train(steps), "--resume", 2);
    expect_refused(run({"train", "-m", "aerie-tiny", "-o", "x"}, here_),
                   "--prompts FILE or --texts FILE", 2);
    for (const auto& [line, why] : std::vector<std::pair<std::string, std::string>>{
             {"{}", "none of \"turns\""},
             {"[1]", "one object a line"},
             {"nonsense", "line 1"},
             {R"({"text": 3})", "must be a string"},
             {R"({"turns": []})", "not empty"},
             {R"({"messages": [{"role": "tool", "content": "x"}]})", "a message from \"tool\""},
             {R"({"messages": [{"role": "user"}]})", "\"content\" must be a string"},
             {R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
              "a part that is no text"},
             {"", "there is no prompt in it"}}) {
        folder_.write("bad.jsonl", line + "\n");
        expect_refused(
            run({"train", "-m", "aerie-tiny", "-o", "x", "--texts", "bad.jsonl", "-q"}, here_),
            why);
    }
    folder_.write("few.jsonl", "{\"text\": \"One text is too few.\"}\n");
    expect_refused(
        run({"train", "-m", "aerie-tiny", "-o", "y", "--texts", "few.jsonl", "-q"}, here_),
        "some dozens", 2);
    folder_.write("chat.jsonl", R"({"messages": [{"role": "user", "content": "x"}]})"
                                "\n");
    const Outcome silent =
        run({"train", "-m", "aerie-tiny", "-o", "z", "--texts", "chat.jsonl", "-q"}, here_);
    EXPECT_EQ(silent.exit_code, 2);
    EXPECT_NE(silent.err.find("1 texts have no answer"), std::string::npos) << silent.err;
    folder_.write("mute.jsonl", R"({"messages": [{"role": "system", "content": "x"}]})"
                                "\n");
    expect_refused(
        run({"train", "-m", "aerie-tiny", "-o", "z", "--prompts", "mute.jsonl", "-q"}, here_),
        "line 1: no user's message", 2);
}

// A head that lies in the folder is not replaced by another training, whatever the flags.
TEST_F(Train, OtherFilesOfTheFolderStay) {
    folder_.write("head/config.json", "{}");
    for (const char* flag : {"--resume", "-q"}) {
        const Outcome outcome = run({"train", "-m", "aerie-tiny", "-o", "head", "--texts",
                                     "texts.jsonl", "--steps", "1", flag},
                                    here_);
        expect_refused(outcome, "has a config.json that is not", 2);
    }
    EXPECT_EQ(read("head/config.json"), "{}");
    EXPECT_FALSE(fs::exists(folder_.path() / "head" / "training"));
}

// A published head is where the training begins.
TEST_F(Train, BeginsWithAHead) {
    const std::vector<std::string> flags = {"--steps", "1"};
    const Outcome random = train(flags, "random");
    if (random.err.find("BLAS") != std::string::npos) GTEST_SKIP() << "SKIPPED: " << random.err;
    ASSERT_EQ(random.exit_code, 0) << random.err;
    const Outcome begun = train(with(flags, {"--init", "aerie-tiny-eagle3"}), "begun");
    ASSERT_EQ(begun.exit_code, 0) << begun.err;
    const auto tau = [](const Outcome& outcome) {
        return std::stod(outcome.out.substr(outcome.out.find("tau ") + 4));
    };
    EXPECT_GT(tau(begun), tau(random) + 0.3);
    expect_refused(train(with(flags, {"--init", "aerie-tiny-eagle"}), "x"), "EAGLE-1/2 head");
    EXPECT_EQ(train(with(flags, {"--init", "aerie-tiny-medusa"}), "y").exit_code, 1);
    EXPECT_EQ(train(with(flags, {"--init", "aerie-tiny"}), "z").exit_code, 1);
}

// Each number of a state file that cannot be is found before anything is allocated by it.
TEST_F(Train, AStateThatCannotBeIsRefused) {
    const Outcome first = train({"--steps", "1"});
    if (first.err.find("BLAS") != std::string::npos) GTEST_SKIP() << "SKIPPED: " << first.err;
    ASSERT_EQ(first.exit_code, 0) << first.err;
    const std::string state = read("head/training/state.bin");
    for (const auto& [key, value] :
         std::vector<std::pair<std::string, std::string>>{{"kv_heads", "-1"},
                                                          {"kv_heads", "0"},
                                                          {"kv_heads", "3"},
                                                          {"head_dim", "0"},
                                                          {"hidden", "2147483647"},
                                                          {"tap_count", "9"},
                                                          {"depths", "0"},
                                                          {"rate", "-1"},
                                                          {"steps", "-5"},
                                                          {"epsilon", "\"x\""},
                                                          {"draft_vocab", "999999"},
                                                          {"draft_ids", "[1,1]"},
                                                          {"taps", "[1,2,99]"},
                                                          {"best_step", "7"}}) {
        std::string changed = state;
        const size_t at = changed.find("\"" + key + "\":") + key.size() + 3;
        const size_t end =
            changed[at] == '[' ? changed.find(']', at) + 1 : changed.find_first_of(",}", at);
        changed.replace(at, end - at, value);
        folder_.write("head/training/state.bin", changed);
        const Outcome outcome = train({"--steps", "2", "--resume"});
        EXPECT_EQ(outcome.signal, 0) << key << " " << value;
        EXPECT_NE(outcome.exit_code, 0) << key << " " << value;
        EXPECT_NE(outcome.err.find("state.bin"), std::string::npos) << key << outcome.err;
    }
    folder_.write("head/training/state.bin", state.substr(0, state.size() - 1));
    const Outcome cut = train({"--steps", "2", "--resume"});
    EXPECT_EQ(cut.exit_code, 1);
    EXPECT_NE(cut.err.find("state.bin is too short"), std::string::npos) << cut.err;
}

// Two files of one name in two folders are two files.
TEST_F(Train, FilesOfOneNameAreNotConfused) {
    std::string more = documents();
    more.replace(more.find("Tom"), 3, "Ben");
    folder_.write("other/texts.jsonl", more);
    const Outcome made = train({"--texts", "other/texts.jsonl", "--steps", "1"});
    if (made.err.find("BLAS") != std::string::npos) GTEST_SKIP() << "SKIPPED: " << made.err;
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const std::string texts = read("head/training/texts.jsonl");
    EXPECT_EQ(std::count(texts.begin(), texts.end(), '\n'), 1 + 40 + 1);
}

// The loss becomes infinite: the best head so far stays, and one line says what to try.
TEST_F(Train, ALossThatIsNotFiniteEndsIt) {
    const Outcome outcome = train({"--steps", "40", "--lr", "1e30"});
    if (outcome.err.find("BLAS") != std::string::npos) GTEST_SKIP() << "SKIPPED: " << outcome.err;
    expect_refused(outcome, "--lr");
    EXPECT_TRUE(fs::exists(folder_.path() / "head" / "model.safetensors"));
}

TEST_F(Train, AFullDiskLosesNothing) {
    Surroundings small = here_;
    small.before = [] {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{4 << 20, 4 << 20};
        setrlimit(RLIMIT_FSIZE, &limit);
    };
    const Outcome outcome = run(training("head", {"--steps", "2"}), small);
    if (outcome.err.find("BLAS") != std::string::npos) GTEST_SKIP() << "SKIPPED: " << outcome.err;
    expect_refused(outcome, "head");
    ASSERT_EQ(train({"--steps", "2", "--resume"}).exit_code, 0);
}

}  // namespace
}  // namespace aerie::test
