// The commands that README.md shows work.
#include <algorithm>
#include <sstream>

#include "io/damage.h"
#include "io/input_file.h"
#include "paths.h"
#include "tools/run_program.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = repository_dir();

// Words of a shell line, with double quotes, up to a comment.
std::vector<std::string> words(const std::string& line) {
    std::vector<std::string> words;
    std::string word;
    bool quoted = false, open = false;
    for (const char c : line + " ") {
        if (c == '"') {
            quoted = !quoted;
            open = true;
        } else if (c == ' ' && !quoted) {
            if (open) words.push_back(word);
            word.clear();
            open = false;
        } else if (c == '#' && !open && !quoted) {
            break;
        } else {
            word += c;
            open = true;
        }
    }
    return words;
}

// The arguments of every line that calls the program in a shell block.
std::vector<std::vector<std::string>> readme_commands() {
    const std::string program = "build/aerie";
    std::istringstream readme(read_text(kRoot / "README.md", 1 << 20));
    std::vector<std::vector<std::string>> commands;
    bool shell = false;
    for (std::string line; std::getline(readme, line);) {
        if (line.starts_with("```")) shell = line == "```sh";
        if (!shell || !line.starts_with(program + " ")) continue;
        commands.push_back(words(line.substr(program.size())));
    }
    return commands;
}

TEST(Readme, CommandsWork) {
    const TestFolder folder;
    fs::create_symlink(kRoot / "README.md", folder.path() / "README.md");
    const auto commands = readme_commands();
    for (std::vector<std::string> command : commands) {
        // A smaller shape takes only a moment.
        std::replace(command.begin(), command.end(), std::string("tinyllama-1.1b"),
                     std::string("aerie-tiny"));
        std::string shown;
        for (const std::string& word : command) shown += " " + word;
        if (command.front() == "bench") command.insert(command.end(), {"--seconds", "0"});
        const Outcome outcome = run(command, {.folder = folder.path()});
        EXPECT_EQ(outcome.exit_code, 0) << shown << ": " << outcome.err;
        EXPECT_FALSE(outcome.out.empty() && outcome.err.empty()) << shown;
    }
    for (const char* name :
         {"generate", "info", "devices", "perplexity", "bench", "synth", "convert", "compare"})
        EXPECT_TRUE(std::any_of(commands.begin(), commands.end(),
                                [&](const auto& command) { return command.front() == name; }))
            << "README.md shows no " << name;
}

}  // namespace
}  // namespace aerie::test
