// Signals, full disks, closed streams, readers that are gone, help texts.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "io/damage.h"
#include "paths.h"
#include "tools/generated.h"
#include "tools/pty.h"

namespace aerie::test {
namespace {

// Long and slow: decoding to the end of the context, past any EOS.
const std::vector<std::string> kLong = {"generate", "-p", "The", "--draft", "none", "-t", "1"};
const Surroundings kSlowly{.variables = {{"AERIE_CPU_ISA", "portable"}}};

void redirect(const char* file, int descriptor) {
    ::dup2(::open(file, O_RDWR), descriptor);
}

void wait_for_text(const Program& program) {
    for (int tries = 0; program.out().size() < 20 && tries < 10'000; ++tries) ::usleep(5000);
}

class Signals : public testing::TestWithParam<int> {};

TEST_P(Signals, EndTheTextCleanly) {
    Program program(kLong, kSlowly);
    wait_for_text(program);
    program.send(GetParam());
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.exit_code, 128 + GetParam());
    EXPECT_GE(outcome.out.size(), 20u);
    EXPECT_TRUE(outcome.out.ends_with("\n"));
    EXPECT_NE(outcome.err.find("finished: cancelled"), std::string::npos) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(All, Signals, testing::Values(SIGINT, SIGTERM, SIGHUP));

using Interrupt = NeedsPty;

TEST_F(Interrupt, StillGivesJson) {
    Pty terminal;
    Surroundings around = kSlowly;
    around.before = [&] { terminal.serve(STDERR_FILENO); };
    Program program(with(kLong, {"--json"}), around);
    terminal.wait_for("reading ");
    program.send(SIGINT);
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.exit_code, 130);
    EXPECT_EQ(field(Json::parse(outcome.out, "stdout"), "finish_reason"), "\"cancelled\"");
}

// A model that takes seconds to load: random weights of 1.1 billion parameters.
TEST_F(Interrupt, WhileLoadingEndsAtOnce) {
    Pty terminal;
    Program program({"bench", "--like", "tinyllama-1.1b", "--weights", "q8_0"},
                    {.before = [&] { terminal.serve(STDERR_FILENO); }});
    terminal.wait_for("loading ");
    program.send(SIGINT);
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.exit_code, 130);
    EXPECT_TRUE(terminal.text().ends_with("\r\x1b[K")) << "the line of progress is gone";
    EXPECT_LT(outcome.cpu_seconds, 2) << "it did not go on loading";
}

TEST_F(Interrupt, WhileThePromptIsReadEndsAtOnce) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    Program program({"generate", "-q"}, {.before = [&] {
                        ::dup2(ends[0], STDIN_FILENO);
                        ::close(ends[1]);
                    }});
    // More than a pipe holds: when all is written, the program is reading.
    const std::string much(300'000, 'a');
    ASSERT_EQ(::write(ends[1], much.data(), much.size()), ssize_t(much.size()));
    program.send(SIGINT);
    EXPECT_EQ(program.wait().exit_code, 130);
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(Nohup, SignalsThatTheShellIgnoresStayIgnored) {
    Surroundings nohup = kSlowly;
    nohup.before = [] { std::signal(SIGHUP, SIG_IGN); };
    Program program(with(kLong, {"-n", "40"}), nohup);
    wait_for_text(program);
    program.send(SIGHUP);
    EXPECT_EQ(program.wait().exit_code, 0);
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

TEST(Stdout, IsCheckedByEveryCommand) {
    const std::vector<std::vector<std::string>> commands = {
        {"info"},   {"info", "--json"}, {"devices"},        {"devices", "--json"},
        {"--help"}, {"--version"},      {"bench", "--help"}};
    for (const auto& command : commands)
        for (const bool is_closed : {false, true}) {
            const Outcome outcome = run(command, {.before = [&] {
                                            redirect("/dev/full", STDOUT_FILENO);
                                            if (is_closed) ::close(STDOUT_FILENO);
                                        }});
            EXPECT_EQ(outcome.exit_code, 1) << command.front();
            EXPECT_EQ(outcome.err,
                      std::string("aerie: stdout: ") +
                          (is_closed ? "Bad file descriptor\n" : "No space left on device\n"));
        }
}

TEST(Stdin, ThatCannotBeReadIsNoEmptyPrompt) {
    for (const auto& [before, why] : std::vector<std::pair<std::function<void()>, std::string>>{
             {[] { ::dup2(::open("/", O_RDONLY), STDIN_FILENO); }, "Is a directory"},
             {[] { ::close(STDIN_FILENO); }, "Bad file descriptor"}})
        for (const std::vector<std::string>& command :
             {std::vector<std::string>{"generate", "-n", "1", "-q"}, {"perplexity", "-"}}) {
            const Outcome outcome = run(command, {.before = before});
            EXPECT_EQ(outcome.exit_code, 1);
            EXPECT_EQ(outcome.err, "aerie: stdin: " + why + "\n");
            EXPECT_EQ(outcome.out, "");
        }
}

// Files may have at most 100 bytes: the text fits, the measured costs do not. The costs of a busy
// machine are not written at all.
TEST(FileSizeLimit, OfACacheIsNoErrorAndLeavesNothing) {
    const TestFolder cache;
    const Outcome outcome =
        run({"generate", "-p", "The", "-n", "2", "-q"},
            {.variables = {{"XDG_CACHE_HOME", cache.path().string()}}, .before = [] {
                 const rlimit limit{100, 100};
                 ::setrlimit(RLIMIT_FSIZE, &limit);
             }});
    EXPECT_EQ(outcome.signal, 0);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache.path()))
        EXPECT_TRUE(entry.is_directory()) << entry.path();
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

using Terminal = NeedsPty;

// The stderr of a short run, as written to a terminal.
std::string on_terminal(std::vector<std::pair<std::string, std::string>> variables) {
    Pty terminal;
    const Outcome outcome =
        run({"generate", "-p", "x", "-n", "4"},
            {.variables = std::move(variables), .before = [&] { terminal.serve(STDERR_FILENO); }});
    EXPECT_EQ(outcome.exit_code, 0);
    return terminal.text();
}

TEST_F(Terminal, ShowsProgressAndRemovesIt) {
    const std::string text = on_terminal({});
    const size_t statistics = text.find("4 tokens");
    ASSERT_NE(statistics, std::string::npos) << text;
    EXPECT_NE(text.find("loading "), std::string::npos) << text;
    EXPECT_NE(text.find("\r\x1b[K\x1b[2m4 tokens"), std::string::npos) << "no clean line";
}

// A line that is longer than the terminal is wide could not be replaced.
TEST_F(Terminal, ProgressStaysOneLine) {
    const TestFolder folder;
    std::filesystem::path deep = folder.path();
    for (int i = 0; i < 12; ++i) deep /= "a_folder_with_a_long_name";
    std::filesystem::create_directories(deep);
    std::filesystem::copy(models_dir() / "aerie-tiny", deep / "model");
    Pty terminal;
    const winsize size = {.ws_row = 20, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
    const auto open = [&] {
        terminal.serve(STDERR_FILENO);
        ::ioctl(STDERR_FILENO, TIOCSWINSZ, &size);
    };
    const Outcome outcome =
        run({"generate", "-m", (deep / "model").string(), "-p", "x", "-n", "4"}, {.before = open});
    EXPECT_EQ(outcome.exit_code, 0);
    const std::string& text = terminal.text();
    const std::string start = "\r\x1b[K";
    int lines = 0;
    for (size_t at = 0; (at = text.find(start + "...", at)) != text.npos; ++lines) {
        at += start.size();
        EXPECT_LE(text.find_first_of("\r\n", at) - at, 40u) << text;
    }
    EXPECT_GT(lines, 0) << text;
}

TEST_F(Terminal, HasNoColorsIfTheUserWantsNone) {
    const std::string text = on_terminal({{"NO_COLOR", "1"}});
    EXPECT_NE(text.find("4 tokens"), std::string::npos) << text;
    EXPECT_EQ(text.find("m4 tokens"), std::string::npos) << text;
    EXPECT_EQ(text.find("\x1b[2m"), std::string::npos) << text;
}

std::vector<std::string> commands() {
    const std::string help = run({"--help"}).out;
    std::vector<std::string> names;
    for (size_t at = help.find("Subcommands:\n"); (at = help.find("\n  ", at)) != help.npos;) {
        at += 3;
        names.push_back(help.substr(at, help.find(' ', at) - at));
    }
    return names;
}

TEST(Help, FitsAHundredColumns) {
    std::vector<std::vector<std::string>> helps = {{"--help"}};
    for (const std::string& command : commands()) helps.push_back({command, "--help"});
    EXPECT_GE(helps.size(), 13u);
    for (const auto& arguments : helps) {
        const std::string help = run(arguments).out;
        for (size_t at = 0, end; (end = help.find('\n', at)) != help.npos; at = end + 1)
            EXPECT_LE(end - at, 100u) << arguments[0] << ": " << help.substr(at, end - at);
    }
}

TEST(Help, IsACommandToo) {
    EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
    for (const std::string& command : commands())
        EXPECT_EQ(run({"help", command}).out, run({command, "--help"}).out);
}

TEST(Help, NamesEveryFlagAndExits0) {
    const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> commands = {
        {{"--help"}, {"generate", "info", "devices", "--version", "AERIE_MODEL"}},
        {{"generate", "--help-all"},
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
