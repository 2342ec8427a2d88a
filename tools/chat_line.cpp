#include "chat_line.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/platform.h"
#include "core/utf8.h"

namespace aerie {

namespace {

constexpr std::string_view kBlock = "\"\"\"", kBlanks = " \t\r\n";

using Kind = ChatLine::Kind;

enum class Takes { nothing, text, file, on_or_off };

// `other_name`: what other programs call it; understood, but not shown.
struct Command {
    const char* name;
    const char* other_name;
    Kind kind;
    Takes takes;
    const char* help;
};

constexpr std::array kCommands = {
    Command{"new", "clear", Kind::begin_anew, Takes::nothing,
            "/new             begin a new conversation; the system message stays"},
    Command{"file", "read", Kind::add_file, Takes::file,
            "/file FILE       put a file's text before the next message"},
    Command{"set", nullptr, Kind::set, Takes::text,
            "/set NAME VALUE  temp, top-k, top-p, min-p, repeat-penalty, seed or predict"},
    Command{"system", nullptr, Kind::system, Takes::text,
            "/system TEXT     the system message; without TEXT none"},
    Command{"retry", "regen", Kind::retry, Takes::nothing,
            "/retry           another answer to the last message (a new seed)"},
    Command{"undo", nullptr, Kind::undo, Takes::nothing,
            "/undo            remove the last message and its answer"},
    Command{"save", nullptr, Kind::save, Takes::file,
            "/save FILE       store the conversation: FILE and its text, FILE.json"},
    Command{"load", nullptr, Kind::load, Takes::file, "/load FILE       go on with a stored one"},
    Command{"draft", nullptr, Kind::draft, Takes::on_or_off,
            "/draft on|off    whether tokens are drafted ahead; the text is the same"},
    Command{"shade", nullptr, Kind::shade, Takes::on_or_off,
            "/shade on|off    show drafted tokens in another colour"},
    Command{"think", nullptr, Kind::think, Takes::on_or_off,
            "/think on|off    show what a reasoning model thinks before it answers"},
    Command{"stats", nullptr, Kind::stats, Takes::on_or_off,
            "/stats on|off    a line of statistics after each answer"},
    Command{"help", "?", Kind::help, Takes::nothing, "/help            this"},
    Command{"exit", "bye", Kind::exit, Takes::nothing, "/exit            or /bye, or Ctrl-D"},
    Command{"quit", "q", Kind::exit, Takes::nothing, nullptr},
};

std::string trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return {};
    return std::string(text.substr(first, text.find_last_not_of(kBlanks) - first + 1));
}

// "~/x" is a file in the user's home, as in a shell.
std::string at_home(const std::string& file) {
    const std::filesystem::path home = platform::home_folder();
    if (home.empty() || !(file == "~" || file.starts_with("~/"))) return file;
    return file.size() < 2 ? home.string() : (home / file.substr(2)).string();
}

// The characters that all names beginning with `begin` have in common after it.
std::string common_rest(const std::string& begin, const std::vector<std::string>& names) {
    std::optional<std::string> common;
    for (const std::string& name : names) {
        if (!name.starts_with(begin)) continue;
        if (!common) common = name;
        const auto ends = std::mismatch(common->begin(), common->end(), name.begin(), name.end());
        common->erase(ends.first, common->end());
    }
    if (!common) return "";
    // A character of several bytes is taken whole or not at all.
    while (common->size() > begin.size() && !is_utf8(*common)) common->pop_back();
    return common->substr(begin.size());
}

// The files of the folder that `begin` names, as it names them; folders end in a slash.
std::vector<std::string> files_like(const std::string& begin) {
    const std::string folder = begin.substr(0, begin.rfind('/') + 1);
    std::vector<std::string> names;
    platform::each_entry(
        folder.empty() ? "." : at_home(folder), [&](const std::filesystem::path& name) {
            std::error_code ignored;
            const bool is_folder =
                std::filesystem::is_directory(at_home(folder) + name.string(), ignored);
            names.push_back(folder + name.string() + (is_folder ? "/" : ""));
        });
    return names;
}

ChatLine line_of(const Command& command, const std::string& rest) {
    const std::string name = std::string("/") + command.name;
    ChatLine line{.kind = command.kind};
    switch (command.takes) {
        case Takes::nothing:
            if (!rest.empty()) throw UsageError(name + " takes nothing after it");
            break;
        case Takes::file:
            if (rest.empty()) throw UsageError(name + " needs a file: " + name + " FILE");
            line.text = at_home(rest);
            break;
        case Takes::text:
            line.text = rest;
            break;
        case Takes::on_or_off:
            if (!rest.empty() && rest != "on" && rest != "off")
                throw UsageError(name + " takes on or off, not " + in_quotes(rest));
            if (!rest.empty()) line.on = rest == "on";
            break;
    }
    return line;
}

}  // namespace

bool ChatInput::add(const std::string& line) {
    std::string_view rest = line;
    const bool is_first = !std::exchange(has_begun_, true);
    if (is_first && rest.starts_with(kBlock)) {
        is_block_ = true;
        rest.remove_prefix(kBlock.size());
        if (rest.empty()) return false;  // the text begins in the next line
    }
    if (std::exchange(has_lines_, true)) text_ += '\n';
    if (!is_block_) {
        const bool ends = !rest.ends_with('\\');
        text_ += rest.substr(0, rest.size() - (ends ? 0 : 1));
        return ends;
    }
    const bool ends = rest.ends_with(kBlock);
    text_ += rest.substr(0, rest.size() - (ends ? kBlock.size() : 0));
    // A closing mark on a line of its own adds no line break to the text.
    if (rest == kBlock && text_.ends_with('\n')) text_.pop_back();
    return ends;
}

ChatInput::Text ChatInput::take() {
    ChatInput whole = std::exchange(*this, ChatInput());
    return {std::move(whole.text_), whole.is_block_};
}

ChatLine read_chat_line(const ChatInput::Text& input) {
    if (trimmed(input.text).empty()) return {};
    if (input.is_block || !input.text.starts_with('/'))
        return {.kind = Kind::message, .text = input.text};
    const size_t end = std::min(input.text.find_first_of(kBlanks), input.text.size());
    const std::string name = input.text.substr(1, end - 1);
    for (const Command& command : kCommands)
        if (name == command.name || (command.other_name && name == command.other_name))
            return line_of(command, trimmed(input.text.substr(end)));
    // Pasted text, such as a program that begins with a comment, is hardly a wrong command.
    if (input.text.find('\n') != input.text.npos)
        return {.kind = Kind::message, .text = input.text};
    throw UsageError(in_quotes("/" + name) + " is no command: see /help, or begin with a space");
}

std::string chat_help() {
    std::string help;
    for (const Command& command : kCommands)
        if (command.help) help += std::string(command.help) + "\n";
    return help +
           "A line that ends in \\ goes on in the next one; so does all between \"\"\" and "
           "\"\"\".\n"
           "Ctrl-C stops an answer, or clears the line. Tab completes commands and files.\n";
}

std::string completed_chat_line(const std::string& line) {
    if (!line.starts_with('/')) return "";
    const size_t space = line.find(' ');
    if (space == line.npos) {
        std::vector<std::string> names;
        for (const Command& command : kCommands)
            if (command.help)
                names.push_back(std::string("/") + command.name +
                                (command.takes == Takes::nothing ? "" : " "));
        return common_rest(line, names);
    }
    for (const Command& command : kCommands)
        if (command.takes == Takes::file && line.substr(1, space - 1) == command.name)
            return common_rest(line.substr(space + 1), files_like(line.substr(space + 1)));
    return "";
}

}  // namespace aerie
