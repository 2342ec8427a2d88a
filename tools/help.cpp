#include "help.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "terminal.h"

namespace aerie {

namespace {

constexpr size_t kMostColumns = 100, kFewestColumns = 40;
constexpr size_t kLongestType = 30;  // bytes of the names of an option's values

// Columns of the terminal on stdout; if stdout is none, as in a pipe to a pager, those that the
// environment names, or else the most.
size_t columns() {
    int columns = columns_of(stdout);
    const char* named = std::getenv("COLUMNS");
    if (columns == 0 && named) columns = std::atoi(named);
    return columns <= 0 ? kMostColumns : std::clamp(size_t(columns), kFewestColumns, kMostColumns);
}

// Breaks text between words into lines of at most `width` bytes; a longer word has a line of its
// own. Line breaks stay; a line that begins with a space, such as an example, is left as it is.
std::string wrapped(std::string_view text, size_t width) {
    std::string lines;
    while (!text.empty()) {
        const size_t length = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, length);
        const bool is_verbatim = line.starts_with(' ');
        size_t column = 0;
        while (!line.empty()) {
            const size_t end = is_verbatim ? line.size() : std::min(line.find(' '), line.size());
            if (column > 0) {
                const bool fits = column + 1 + end <= width;
                lines += fits ? ' ' : '\n';
                column = fits ? column + 1 : 0;
            }
            lines += line.substr(0, end);
            column += end;
            line.remove_prefix(std::min(end + 1, line.size()));
        }
        text.remove_prefix(length);
        if (text.empty()) break;
        lines += '\n';
        text.remove_prefix(1);
    }
    return lines;
}

class HelpFormatter : public CLI::Formatter {
  public:
    // CLI11 leaves two empty lines between groups; one is kept.
    std::string make_help(const CLI::App* app, std::string name,
                          CLI::AppFormatMode mode) const override {
        std::string help = CLI::Formatter::make_help(app, std::move(name), mode);
        for (size_t at; (at = help.find("\n\n\n")) != help.npos;) help.erase(at, 1);
        return help;
    }
    std::string make_option_desc(const CLI::Option* option) const override {
        std::string text = option->get_description();
        if (!is_short(*option)) text += "\nOne of " + listed(option->get_type_name());
        return wrapped(text, width_ - get_column_width());
    }
    std::string make_option_opts(const CLI::Option* option) const override {
        if (is_short(*option)) return CLI::Formatter::make_option_opts(option);
        return option->get_required() ? " NAME REQUIRED" : " NAME";
    }
    std::string make_description(const CLI::App* app) const override {
        return wrapped(app->get_description(), width_) + "\n";
    }
    std::string make_subcommand(const CLI::App* command) const override {
        std::stringstream out;
        CLI::detail::format_help(out, command->get_name(),
                                 wrapped(command->get_description(), width_ - get_column_width()),
                                 get_column_width());
        return out.str();
    }
    std::string make_footer(const CLI::App* app) const override {
        const std::string footer = app->get_footer();
        return footer.empty() ? "" : wrapped(footer, width_) + "\n";
    }

  private:
    // The names of "a|b|c" as "a, b, c", which can be broken into lines.
    static std::string listed(const std::string& names) {
        std::string list;
        for (const char c : names)
            if (c == '|')
                list += ", ";
            else
                list += c;
        return list;
    }
    // Whether the names of the option's values fit beside it.
    static bool is_short(const CLI::Option& option) {
        return option.get_type_name().size() <= kLongestType;
    }

    const size_t width_ = columns();
};

}  // namespace

std::shared_ptr<CLI::Formatter> help_formatter() {
    return std::make_shared<HelpFormatter>();
}

void add_examples(CLI::App& command, std::initializer_list<const char*> examples) {
    std::string footer = command.get_footer();
    footer += footer.empty() ? "Examples:" : "\n\nExamples:";
    for (const char* example : examples) footer += std::string("\n  ") + example;
    command.footer(footer);
}

void show_experiments(CLI::App& app, bool shown) {
    if (shown) return;
    for (CLI::App* command : app.get_subcommands({}))
        for (CLI::Option* option : command->get_options())
            if (option->get_group() == kExperiments) option->group("");
}

}  // namespace aerie
