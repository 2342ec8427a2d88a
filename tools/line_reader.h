// Lines of stdin: typed and edited on a terminal, or as they come through a pipe.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace aerie {

// How long a wait for input may last before signals that came ahead of poll() are looked for.
constexpr int kLookMilliseconds = 200;

class LineReader {
  public:
    enum class Got {
        line,
        cleared,  // Ctrl-C: the typed text was discarded
        end,      // the input ended, or a signal was noted that ends the program
    };
    virtual ~LineReader() = default;
    // Waits for a line, which comes without its line end. The prompt is for a terminal and goes to
    // stderr. Throws Error.
    virtual Got read(const std::string& prompt, std::string& line) = 0;
};

// A reader without editing.
std::unique_ptr<LineReader> make_plain_reader(bool is_terminal);
// A reader that edits, and keeps its history in the file `history` between runs; nullptr if this
// program has no editor, or the terminal cannot be edited on.
std::unique_ptr<LineReader> make_line_editor(const std::filesystem::path& history);

}  // namespace aerie
