// `aerie chat` on a terminal, with typed input.
#include <sys/stat.h>

#include <csignal>

#include "io/damage.h"
#include "io/input_file.h"
#include "paths.h"
#include "tools/generated.h"
#include "tools/tmux.h"

namespace aerie::test {
namespace {

const std::string kMessage = "What is 3 times 14?";

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

class ChatTerminal : public testing::Test {
  protected:
    void SetUp() override {
        if (!Tmux::is_here()) GTEST_SKIP() << "SKIPPED: no tmux here, or no terminals for it";
    }

    // The command line of the program with these flags; its state lies in the test's folder.
    std::string command(const std::vector<std::string>& flags, const std::string& before = "") {
        const std::string folder = quoted(folder_.path().string());
        std::string line = "cd " + folder +
                           " && exec env AERIE_MODEL=aerie-tiny AERIE_DEVICE=cpu HOME=" + folder +
                           " XDG_STATE_HOME=" + folder + " XDG_CACHE_HOME=" + folder + " " +
                           before + " " + quoted(program_file().string()) + " chat";
        for (const std::string& flag : flags) line += " " + quoted(flag);
        return line;
    }

    // A model of random weights with the tokens of aerie-tiny.
    std::string slow_model(const char* hidden, const char* heads, const char* intermediate) {
        const std::string model = (folder_.path() / "slow").string();
        EXPECT_EQ(run({"synth", "--like", "aerie-tiny", "--hidden", hidden, "--heads", heads,
                       "--intermediate", intermediate, "-o", model, "-q"})
                      .exit_code,
                  0);
        return model;
    }

    const TestFolder folder_;
};

TEST_F(ChatTerminal, DoesAllThatItsCommandsSay) {
    const std::string answer =
        text_of(generated({"--chat", "-p", kMessage, "-n", "24", "--draft", "eagle2"}));
    const Tmux terminal(folder_.path(), command({"-n", "24", "--draft", "eagle2"}));
    terminal.wait_for_prompt();
    EXPECT_TRUE(has(terminal.shown(),
                    "aerie-tiny on cpu, 2048 tokens of context, drafts by eagle2; /help"));
    const auto enter = [&](const std::string& line, const std::string& then) {
        terminal.enter(line);
        terminal.wait_for(then);
        terminal.wait_for_prompt();
    };
    enter(kMessage, answer.substr(0, answer.find('\n')));
    terminal.wait_for("(ended: 24 tokens: the limit of -n)");
    terminal.wait_for_prompt();
    enter("/stats on", "(statistics on)");
    enter("/draft off", "(drafting off)");
    enter("And then?", "tau 1.00, first token after");
    enter("/retry", "(greedy: the same text again");
    enter("/undo", "(removed: 'And then?')");
    enter("/draft", "(drafting on)");
    enter("/system Be brief.", "aerie: this model takes no system message");
    enter("/save talk", "(stored: talk and talk.json)");
    const std::string stored = read_text(folder_.path() / "talk.json", 1 << 16);
    EXPECT_EQ(stored, Json(Json::Array{Json::Object{{"role", "user"}, {"content", kMessage}},
                                       Json::Object{{"role", "assistant"}, {"content", answer}}})
                              .dump() +
                          "\n");
    enter("/load talk", "(loaded talk.json: 1 turn)");
    enter("/shade", "(shading on)");
    enter("/nothing", "'/nothing' is no command");
    enter("/help", "/retry ");
    terminal.enter("/exit");
    terminal.wait_until("the end", [&] { return terminal.has_ended(); });
    EXPECT_EQ(terminal.exit_code(), 0) << terminal.shown();
}

TEST_F(ChatTerminal, EditsLinesAndRemembersThem) {
    const Tmux terminal(folder_.path(), command({"-n", "4"}));
    terminal.wait_for_prompt();
    terminal.type("/hepl");
    terminal.key("BSpace");
    terminal.key("BSpace");
    terminal.enter("lp");
    terminal.wait_for("/retry ");
    terminal.wait_for_prompt();
    terminal.type("/undo but not now");
    terminal.key("C-c");
    terminal.wait_for_prompt();
    terminal.enter("\"\"\"");
    terminal.wait_until("the next line", [&] { return terminal.last_line() == "."; });
    terminal.type("half of it");
    terminal.key("C-c");
    terminal.wait_for_prompt();
    EXPECT_FALSE(has(terminal.shown(), "aerie: /undo")) << terminal.shown();
    terminal.type("s\xC3\xBC\xC3\x9F");  // then the two letters are deleted
    terminal.key("BSpace");
    terminal.key("BSpace");
    terminal.key("BSpace");
    terminal.wait_for_prompt();
    terminal.key("Up");
    terminal.key("Up");
    terminal.wait_until("the line of before", [&] { return terminal.last_line() == "> /help"; });
    terminal.key("C-c");
    terminal.wait_for_prompt();
    terminal.key("C-d");
    terminal.wait_until("the end", [&] { return terminal.has_ended(); });
    EXPECT_EQ(terminal.exit_code(), 0) << terminal.shown();

    const std::filesystem::path history = folder_.path() / "aerie" / "chat_history";
    EXPECT_EQ(read_text(history, 1 << 16), "/help\n\"\"\"\n");
    struct stat info = {};
    ASSERT_EQ(::stat(history.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
}

// The model takes tens of seconds for 2,000 tokens. Sampled, it might say the end of text by
// chance.
TEST_F(ChatTerminal, StopsAnAnswerAndGoesOn) {
    const std::string model = slow_model("768", "12", "2048");
    const Tmux terminal(folder_.path(), command({"-m", model, "--draft", "none", "-t", "1",
                                                 "--stats", "--temp", "0"}));
    terminal.wait_for_prompt();
    for (const char* message : {"One", "Two"}) {
        const size_t before = terminal.shown().size();
        terminal.enter(message);
        terminal.wait_until("some of it", [&] { return terminal.shown().size() > before + 40; });
        terminal.type("typed ahead");
        terminal.key("C-c");
        terminal.wait_until("its end", [&] { return terminal.last_line() == "> typed ahead"; });
        EXPECT_TRUE(has(terminal.shown().substr(before), "(stopped)")) << terminal.shown();
        const std::string shown = terminal.shown();
        EXPECT_EQ(shown.find("typed ahead", before), shown.rfind("typed ahead")) << shown;
        EXPECT_FALSE(has(shown, "tokens/s")) << "no figures of a stopped answer: " << shown;
        terminal.key("C-c");  // takes the typed line away
        terminal.wait_for_prompt();
        EXPECT_FALSE(has(terminal.shown(), "is full")) << terminal.shown();
    }
    terminal.enter("/undo");
    terminal.wait_for("(removed: 'Two')");
    EXPECT_FALSE(terminal.has_ended());
    terminal.key("C-d");
    terminal.wait_until("the end", [&] { return terminal.has_ended(); });
    EXPECT_EQ(terminal.exit_code(), 0);
}

// Ctrl-C while the model loads ends the program; while a prompt is read, an answer is shown or a
// line is typed, it ends that alone.
TEST_F(ChatTerminal, IsStoppedAtAnyMoment) {
    const std::string model = slow_model("512", "8", "1024");
    const std::string chat = command({"-m", model, "--draft", "none", "-t", "1", "--temp", "0"});
    for (const int milliseconds : {0, 30, 100, 300}) {
        const Tmux terminal(folder_.path(), chat);
        ::usleep(useconds_t(milliseconds) * 1000);
        terminal.key("C-c");
        // A terminal that the program has not set up yet shows the key itself: "^C> ".
        terminal.wait_until("the end or a prompt", [&] {
            return terminal.has_ended() || terminal.last_line().ends_with(">");
        });
        // The first press may still meet the shell, which then ends with 0.
        if (terminal.has_ended()) {
            EXPECT_TRUE(terminal.exit_code() == 130 || terminal.exit_code() == 0) << milliseconds;
        }
    }
    std::string message;
    for (int i = 0; i < 300; ++i) message += "and " + std::to_string(i % 10) + " ";
    const Tmux terminal(folder_.path(), chat);
    terminal.wait_for_prompt();
    int stopped = 0;  // presses that cannot come before the message
    for (const int milliseconds : {0, 30, 100, 300, 700, 1500, 3000}) {
        terminal.enter(message);
        ::usleep(useconds_t(milliseconds) * 1000);
        terminal.key("C-c");
        terminal.wait_for_prompt();
        EXPECT_FALSE(terminal.has_ended()) << milliseconds;
        stopped += milliseconds >= 300;
        terminal.enter("/new");
        terminal.wait_for_prompt();
        terminal.wait_for_prompt();
    }
    const std::string shown = terminal.shown();
    int seen = 0;
    for (size_t at = 0; (at = shown.find("(stopped)", at)) != shown.npos; ++at) ++seen;
    EXPECT_GE(seen, stopped) << shown;
    terminal.key("C-d");
    terminal.wait_until("the end", [&] { return terminal.has_ended(); });
    EXPECT_EQ(terminal.exit_code(), 0);
}

// The answer is a thought from its beginning on.
TEST_F(ChatTerminal, SaysThatItIsThinking) {
    folder_.write("thinks.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}<think>");
    const Tmux terminal(folder_.path(),
                        command({"--hide-thinking", "--template", "thinks.jinja", "--draft", "none",
                                 "-t", "1", "--temp", "0", "-m", slow_model("512", "8", "1024")}));
    terminal.wait_for_prompt();
    terminal.enter(kMessage);
    terminal.wait_for("thinking: ");
    terminal.key("C-c");
    terminal.wait_for_prompt();
    EXPECT_FALSE(has(terminal.shown(), "thinking: ")) << terminal.shown();
}

TEST_F(ChatTerminal, ShadesDraftedTokensUnlessColoursAreUnwanted) {
    const std::string answer = text_of(generated({"--chat", "-p", kMessage, "-n", "24"}));
    const std::vector<std::string> flags = {"-n",     "24",      "--draft", "eagle2",
                                            "--tree", "60,6,10", "--shade"};
    for (const bool wanted : {true, false}) {
        const Tmux terminal(folder_.path(), command(flags, wanted ? "" : "NO_COLOR=1"));
        terminal.wait_for_prompt();
        terminal.enter(kMessage);
        terminal.wait_for("(ended: ");
        EXPECT_TRUE(has(terminal.shown(), answer.substr(0, answer.find('\n')))) << terminal.shown();
        EXPECT_EQ(has(terminal.shown(true), "\x1b[36m"), wanted) << terminal.shown(true);
    }
}

TEST_F(ChatTerminal, GenerateShadesToo) {
    const std::string folder = quoted(folder_.path().string());
    for (const bool wanted : {true, false}) {
        const Tmux terminal(folder_.path(),
                            "exec env AERIE_DEVICE=cpu XDG_CACHE_HOME=" + folder +
                                (wanted ? " " : " NO_COLOR=1 ") + quoted(program_file().string()) +
                                " generate -m aerie-tiny --draft eagle2 --tree 60,6,10 --chat "
                                "--shade -n 24 -p " +
                                quoted(kMessage));
        terminal.wait_for("accepted by depth");
        EXPECT_EQ(has(terminal.shown(true), "\x1b[36m"), wanted) << terminal.shown(true);
    }
}

// tmux's paste-buffer -p marks what it pastes, as terminals do.
TEST_F(ChatTerminal, TakesAPasteAsOneMessage) {
    const std::string answer = text_of(generated({"--chat", "-p", "one\n\ttwo\nthree", "-n", "4"}));
    const Tmux terminal(folder_.path(), command({"-n", "4"}));
    terminal.wait_for_prompt();
    terminal.paste("one\n\ttwo\nthree\n");
    terminal.wait_for("three");
    EXPECT_FALSE(has(terminal.shown(), "the limit of -n")) << terminal.shown();
    terminal.key("Enter");
    terminal.wait_for("the limit of -n");
    terminal.wait_for_prompt();
    EXPECT_TRUE(has(terminal.shown(), answer.substr(0, answer.find('\n')))) << terminal.shown();
    terminal.enter("/undo");
    terminal.wait_for("(removed: 'one");
    terminal.wait_for_prompt();
    terminal.enter("/undo");
    terminal.wait_for("there is no message yet");
}

TEST_F(ChatTerminal, CompletesCommands) {
    const Tmux terminal(folder_.path(), command({"-n", "4"}));
    terminal.wait_for_prompt();
    terminal.type("/he");
    terminal.key("Tab");
    terminal.wait_until("the command", [&] { return terminal.last_line() == "> /help"; });
    terminal.key("Enter");
    terminal.wait_for("/retry ");
}

TEST_F(ChatTerminal, FollowsItsWindow) {
    const Tmux terminal(folder_.path(), command({"-n", "4"}));
    terminal.wait_for_prompt();
    terminal.type("/undo");
    terminal.resize(60, 20);
    terminal.wait_until("the line again", [&] { return terminal.last_line() == "> /undo"; });
    terminal.key("Enter");
    terminal.wait_for("aerie: /undo: there is no message yet");
}

TEST_F(ChatTerminal, LeavesTheTerminalAsItWas) {
    const Tmux terminal(folder_.path(),
                        "cd " + quoted(folder_.path().string()) + " && PS1='$ ' exec sh");
    terminal.enter("sh -c " + quoted("echo $$ >pid; " + command({"-n", "4"})) +
                   "; echo code $?; stty -a");
    terminal.wait_for_prompt();
    const int id = std::atoi(read_text(folder_.path() / "pid", 16).c_str());
    ASSERT_GT(id, 1);
    ::kill(id, SIGTERM);
    terminal.wait_for("code 143");
    terminal.wait_for("icanon");
    EXPECT_FALSE(has(terminal.shown(), "-icanon")) << terminal.shown();
    EXPECT_FALSE(has(terminal.shown(), "-echo ")) << terminal.shown();
    EXPECT_TRUE(has(terminal.shown(), "intr = ^C")) << terminal.shown();
}

}  // namespace
}  // namespace aerie::test
