// The lines that were typed, in a file that only the user can read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace aerie {

class LineHistory {
  public:
    // Reads the newest lines of the file, which need not exist. If it cannot be read or written, or
    // if the path is empty, there is no history; this is no error.
    explicit LineHistory(std::filesystem::path file);

    const std::vector<std::string>& lines() const { return lines_; }  // the newest last
    // Adds a line unless it equals the newest one. Other programs may add to the same file.
    void add(const std::string& line);

  private:
    std::filesystem::path file_;
    std::vector<std::string> lines_;
};

// The history file of `aerie chat`: in $XDG_STATE_HOME or ~/.local/state; empty: neither is known.
std::filesystem::path chat_history_file();

}  // namespace aerie
