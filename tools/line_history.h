// What was typed, kept in a file of the user's alone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace aerie {

class LineHistory {
  public:
    // The newest lines of the file, which need not exist. That it can be neither read nor written
    // is no error: then there is none. An empty path: likewise.
    explicit LineHistory(std::filesystem::path file);

    const std::vector<std::string>& lines() const { return lines_; }  // the newest last
    // Unless it is the newest already. Other programs may add to the same file.
    void add(const std::string& line);

  private:
    std::filesystem::path file_;
    std::vector<std::string> lines_;
};

// Where it is kept for `aerie chat`: $XDG_STATE_HOME or ~/.local/state; empty: not known.
std::filesystem::path chat_history_file();

}  // namespace aerie
