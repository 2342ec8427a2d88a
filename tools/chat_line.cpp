#include "chat_line.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {

namespace {

constexpr std::string_view kBlock = "\"\"\"", kBlanks = " \t\r\n";

using Kind = ChatLine::Kind;

enum class Takes { nothing, text, file, on_or_off };

struct Command {
    const char* name;
    Kind kind;
    Takes takes;
    const char* help;
};

constexpr std::array kCommands = {
    Command{"system", Kind::system, Takes::text,
            "/system TEXT     the system message; without TEXT none"},
    Command{"retry", Kind::retry, Takes::nothing,
            "/retry           another answer to the last message (a new seed)"},
    Command{"undo", Kind::undo, Takes::nothing,
            "/undo            take the last message and its answer away"},
    Command{"save", Kind::save, Takes::file,
            "/save FILE       store the conversation: FILE and its text, FILE.json"},
    Command{"load", Kind::load, Takes::file, "/load FILE       go on with a stored one"},
    Command{"draft", Kind::draft, Takes::on_or_off,
            "/draft on|off    whether tokens are drafted ahead; the text is the same"},
    Command{"shade", Kind::shade, Takes::on_or_off,
            "/shade on|off    show drafted tokens in another colour"},
    Command{"stats", Kind::stats, Takes::on_or_off,
            "/stats on|off    a line of figures after each answer"},
    Command{"help", Kind::help, Takes::nothing, "/help            this"},
    Command{"exit", Kind::exit, Takes::nothing, "/exit            or Ctrl-D"},
};

std::string trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return {};
    return std::string(text.substr(first, text.find_last_not_of(kBlanks) - first + 1));
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
            line.text = rest;
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
        if (name == command.name) return line_of(command, trimmed(input.text.substr(end)));
    throw UsageError(in_quotes("/" + name) + " is no command: see /help, or begin with a space");
}

std::string chat_help() {
    std::string help;
    for (const Command& command : kCommands) help += std::string(command.help) + "\n";
    return help +
           "A line that ends in \\ goes on in the next one; so does all between \"\"\" and "
           "\"\"\".\n"
           "Ctrl-C stops an answer, or clears the line.\n";
}

}  // namespace aerie
