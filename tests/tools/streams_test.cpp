// Ctrl-C, full disks, gone readers, help texts.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "tools/generated.h"

namespace aerie::test {
namespace {

// Long and slow: decoding to the end of the context, past any EOS.
const std::vector<std::string> kLong = {"generate", "-p", "The", "--draft", "none", "-t", "1"};
const Surroundings kSlowly{.variables = {{"AERIE_CPU_ISA", "portable"}}};

void redirect(const char* file, int descriptor) {
    ::dup2(::open(file, O_RDWR), descriptor);
}

void wait_for_text(const Program& program) {
    for (int tries = 0; program.out().size() < 20 && tries < 2000; ++tries) ::usleep(5000);
}

TEST(Interrupt, EndsTheTextCleanly) {
    Program program(kLong, kSlowly);
    wait_for_text(program);
    program.interrupt();
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.exit_code, 130);
    EXPECT_GE(outcome.out.size(), 20u);
    EXPECT_TRUE(outcome.out.ends_with("\n"));
    EXPECT_NE(outcome.err.find("finished: cancelled"), std::string::npos) << outcome.err;
}

TEST(Interrupt, StillGivesJson) {
    Program program(with(kLong, {"--json", "-q"}), kSlowly);
    ::usleep(500'000);
    program.interrupt();
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.exit_code, 130);
    const Json json = Json::parse(outcome.out, "stdout");
    EXPECT_EQ(field(json, "finish_reason"), "\"cancelled\"");
    EXPECT_FALSE(json.find("ids")->array()->empty());
}

TEST(Stdout, FullDiskIsOneError) {
    Surroundings full = kSlowly;
    full.before = [] { redirect("/dev/full", STDOUT_FILENO); };
    const Outcome streamed = run(with(kLong, {"-q"}), full);
    EXPECT_LT(streamed.cpu_seconds, 2) << "it ends at once";
    for (const Outcome& outcome : {streamed, run(with(kLong, {"-q", "--json", "-n", "2"}), full)}) {
        EXPECT_EQ(outcome.exit_code, 1);
        EXPECT_EQ(outcome.err, "aerie: stdout: No space left on device\n");
    }
}

TEST(Stdout, ClosedIsOneError) {
    const Outcome outcome =
        run({"generate", "-p", "x", "-n", "4", "-q"}, {.before = [] { ::close(STDOUT_FILENO); }});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(Stdout, GoneReaderEndsTheProgram) {
    Surroundings pipe = kSlowly;
    pipe.before = [] {
        int ends[2];
        if (::pipe(ends) != 0) return;
        ::dup2(ends[1], STDOUT_FILENO);
        ::close(ends[0]);
        ::close(ends[1]);
    };
    const Outcome outcome = run(kLong, pipe);
    EXPECT_EQ(outcome.signal, SIGPIPE);
    EXPECT_LT(outcome.cpu_seconds, 2);
}

// What a short run writes to a terminal as stderr.
std::string on_terminal(std::vector<std::pair<std::string, std::string>> variables) {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0) return "no terminal";
    const std::string name = ::ptsname(master);
    const Outcome outcome =
        run({"generate", "-p", "x", "-n", "4"},
            {.variables = std::move(variables), .before = [&] { redirect(name.c_str(), 2); }});
    EXPECT_EQ(outcome.exit_code, 0);
    char text[4096];
    const ssize_t size = ::read(master, text, sizeof(text));
    ::close(master);
    return size > 0 ? std::string(text, size_t(size)) : "";
}

TEST(Terminal, ShowsProgressAndRemovesIt) {
    const std::string text = on_terminal({});
    const size_t statistics = text.find("4 tokens");
    ASSERT_NE(statistics, std::string::npos) << text;
    EXPECT_NE(text.find("loading "), std::string::npos) << text;
    EXPECT_NE(text.find("\r\x1b[K\x1b[2m4 tokens"), std::string::npos) << "no clean line";
}

TEST(Terminal, HasNoColorsIfTheUserWantsNone) {
    const std::string text = on_terminal({{"NO_COLOR", "1"}});
    EXPECT_NE(text.find("4 tokens"), std::string::npos) << text;
    EXPECT_EQ(text.find("m4 tokens"), std::string::npos) << text;
    EXPECT_EQ(text.find("\x1b[2m"), std::string::npos) << text;
}

TEST(Help, NamesEveryFlagAndExits0) {
    const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> commands = {
        {{"--help"}, {"generate", "info", "devices", "--version", "AERIE_MODEL"}},
        {{"generate", "--help"},
         {"-m,",
          "-p,",
          "-f,",
          "-n,",
          "-c,",
          "-t,",
          "--temp",
          "--top-k",
          "--top-p",
          "--min-p",
          "--repeat-penalty",
          "--frequency-penalty",
          "--presence-penalty",
          "-s,",
          "--seed",
          "--stop",
          "--chat",
          "--json",
          "--logprobs",
          "--quiet",
          "--compare-plain",
          "--draft ",
          "--head",
          "--chain-length",
          "--tree ",
          "--tree-file",
          "--proposals",
          "--no-value",
          "--no-rerank",
          "--weights",
          "--draft-weights",
          "--kv",
          "--device"}},
        {{"info", "--help"}, {"-m,", "-c,", "--json", "--weights", "--kv", "--draft "}},
        {{"devices", "--help"}, {"--json"}}};
    for (const auto& [command, flags] : commands) {
        const Outcome outcome = run(command);
        EXPECT_EQ(outcome.exit_code, 0);
        EXPECT_EQ(outcome.err, "");
        for (const std::string& flag : flags)
            EXPECT_NE(outcome.out.find(flag), std::string::npos) << flag;
    }
    EXPECT_EQ(run({"--version"}).out, "aerie " AERIE_VERSION "\n");
}

TEST(Devices, AreListed) {
    EXPECT_NE(("\n" + run({"devices"}).out).find("\ncpu "), std::string::npos);
    const Json json = Json::parse(run({"devices", "--json"}).out, "stdout");
    EXPECT_EQ(field(json, "schema"), "\"aerie-devices-1\"");
    EXPECT_EQ(field(json.find("devices")->array()->back(), "name"), "\"cpu\"");
}

}  // namespace
}  // namespace aerie::test
