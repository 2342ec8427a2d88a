// Lines of stdin: typed and edited on a terminal, or as they come through a pipe.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace aerie {

class LineReader {
  public:
    enum class Got {
        line,
        cleared,  // Ctrl-C: what was typed is gone
        end,      // of the input, or a signal was noted that ends the program
    };
    virtual ~LineReader() = default;
    // Waits for a line; it comes without its end. The prompt is for a terminal and goes to stderr.
    // Throws Error.
    virtual Got read(const std::string& prompt, std::string& line) = 0;
};

// Without editing.
std::unique_ptr<LineReader> make_plain_reader(bool is_terminal);
// With a history between runs in `history`; null where this program has no editor, or the terminal
// cannot be edited on.
std::unique_ptr<LineReader> make_line_editor(const std::filesystem::path& history);

}  // namespace aerie
