// The program's own account of itself: completion scripts, run by the shells themselves; helps; the
// objects of --json.
#include <set>
#include <sstream>

#include "io/damage.h"
#include "io/input_file.h"
#include "io/json.h"
#include "paths.h"
#include "tools/run_program.h"
#include "tools/tmux.h"

namespace aerie::test {
namespace {

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::string script(const std::string& shell) {
    const Outcome outcome = run({"completion", shell});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
}

TEST(Completion, OfBashKnowsCommandsFlagsAndValues) {
    const TestFolder folder;
    const std::string file = folder.write("aerie.bash", script("bash")).string();
    const auto completed = [&](const std::string& words) {
        return output_of("bash -c " +
                         quoted("source " + quoted(file) + "; COMP_WORDS=(aerie " + words +
                                "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); "
                                "_aerie; echo \"${COMPREPLY[*]}\""));
    };
    EXPECT_EQ(completed("gen"), "generate\n");
    EXPECT_EQ(completed("generate --mod"), "--model --model-draft\n");
    EXPECT_EQ(completed("generate --kv ''"), "f32 f16\n");
    EXPECT_EQ(completed("generate --weights q8"), "q8_0\n");
    EXPECT_EQ(completed("generate -m ''"), "\n") << "files, which the shell completes";
    EXPECT_FALSE(has(completed("generate --no"), "--no-value")) << "an experiment";
}

TEST(Completion, IsReadByZshAndFish) {
    const TestFolder folder;
    int shells = 0;
    for (const std::string shell : {"zsh", "fish"}) {
        const std::string text = script(shell);
        EXPECT_TRUE(has(text, "generate")) << shell;
        if (output_of("command -v " + shell).empty()) continue;
        ++shells;
        const std::string file = folder.write("script", text).string();
        EXPECT_EQ(output_of(shell + " -n " + quoted(file)), "") << shell;
    }
    if (shells == 0) GTEST_SKIP() << "SKIPPED: neither zsh nor fish is here";
}

void collect_names(const Json& value, std::set<std::string>& names) {
    if (const Json::Array* array = value.array())
        for (const Json& element : *array) collect_names(element, names);
    if (const Json::Object* object = value.object())
        for (const auto& [name, member] : *object) {
            names.insert(name);
            collect_names(member, names);
        }
}

TEST(Json, ObjectsHaveNoFieldThatIsNotDescribed) {
    const std::string described = read_text(repository_dir() / "docs" / "json.md", 1 << 20);
    const std::string file = (repository_dir() / "CHANGELOG.md").string();
    const std::string chatml = (test_data_dir() / "jinja" / "chatml.jinja").string();
    const std::vector<std::vector<std::string>> commands = {
        {"generate", "-m", "aerie-tiny", "-p", "Hello", "-n", "4", "--logprobs"},
        {"info", "aerie-tiny"},
        {"devices"},
        {"models"},
        {"cache"},
        {"tokenize", "-m", "aerie-tiny", "-p", "Hello"},
        {"render", "--template", chatml, "--conversation", "-"},
        {"perplexity", "-m", "aerie-tiny", file}};
    const std::set<std::string> types = {"f16", "q8_0"};  // names of "by type"
    for (std::vector<std::string> command : commands) {
        command.push_back("--json");
        const Outcome outcome = run(command, {.input = R"([{"role": "user", "content": "Hi"}])"});
        ASSERT_EQ(outcome.exit_code, 0) << command[0] << ": " << outcome.err;
        const Json object = Json::parse(outcome.out, command[0]);
        EXPECT_TRUE(has(described, "`" + *object.find("schema")->string() + "`")) << command[0];
        std::set<std::string> names;
        collect_names(object, names);
        EXPECT_GT(names.size(), 1u);
        for (const std::string& name : names) {
            if (name == "schema" || types.contains(name)) continue;
            EXPECT_TRUE(has(described, "`" + name + "`")) << command[0] << ": " << name;
        }
    }
}

TEST(Help, HasExamplesAndHidesExperiments) {
    const std::string help = run({"generate", "--help"}).out;
    EXPECT_TRUE(has(help, "\nExamples:\n  aerie generate ")) << help;
    EXPECT_FALSE(has(help, "--no-value")) << help;
    EXPECT_TRUE(has(run({"generate", "--help-all"}).out, "\nExperiments:\n")) << help;
    EXPECT_EQ(run({"help", "generate"}).out, help);
    EXPECT_EQ(run({"version"}).out, run({"--version"}).out);
    EXPECT_EQ(run({"ls", "--json"}).out, run({"models", "--json"}).out);
}

// The columns of a terminal are those of its helps.
TEST(Help, FitsTheTerminal) {
    if (!Tmux::is_here()) GTEST_SKIP() << "SKIPPED: no tmux here, or no terminals for it";
    const TestFolder folder;
    for (const char* command : {"", "generate", "chat", "serve", "train", "bench", "compare"}) {
        const Tmux terminal(
            folder.path(), "sh -c " + quoted("stty columns 80; " + quoted(program_file().string()) +
                                             " " + command + " --help; read x"));
        terminal.wait_for("Examples:");
        std::istringstream shown(terminal.shown());
        for (std::string line; std::getline(shown, line);)
            EXPECT_LE(line.size(), 80u) << command << ": " << line;
    }
}

}  // namespace
}  // namespace aerie::test
