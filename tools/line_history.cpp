#include "line_history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

#include "state_folder.h"

namespace aerie {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxLines = 1000;
constexpr std::streamoff kMaxBytes = 1 << 20;  // read at the end of a file

// A file that only the user can read, even if it existed with other permissions.
class PrivateFile {
  public:
    PrivateFile(const fs::path& path, int flags)
        : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0600)) {
        if (file_ >= 0) (void)::fchmod(file_, 0600);
    }
    ~PrivateFile() {
        if (file_ >= 0) ::close(file_);
    }
    PrivateFile(const PrivateFile&) = delete;
    PrivateFile& operator=(const PrivateFile&) = delete;

    void write(const std::string& bytes) {
        if (file_ >= 0) (void)!::write(file_, bytes.data(), bytes.size());
    }

  private:
    int file_;
};

// The lines at the end of the file.
std::vector<std::string> lines_of(const fs::path& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return {};
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    const std::streamoff size = file.tellg();
    file.seekg(std::max<std::streamoff>(0, size - kMaxBytes));
    std::vector<std::string> lines;
    std::string line;
    if (size > kMaxBytes) std::getline(file, line);  // a partial line
    while (std::getline(file, line)) lines.push_back(std::exchange(line, {}));
    return lines;
}

}  // namespace

LineHistory::LineHistory(fs::path file) : file_(std::move(file)) {
    if (file_.empty()) return;
    std::error_code ignored;
    fs::create_directories(file_.parent_path(), ignored);
    lines_ = lines_of(file_);
    if (lines_.size() <= kMaxLines) return;
    lines_.erase(lines_.begin(), lines_.end() - kMaxLines);
    std::string kept;
    for (const std::string& line : lines_) kept += line + "\n";
    PrivateFile(file_, O_TRUNC).write(kept);
}

void LineHistory::add(const std::string& line) {
    if (line.empty() || (!lines_.empty() && lines_.back() == line)) return;
    lines_.push_back(line);
    if (!file_.empty()) PrivateFile(file_, O_APPEND).write(line + "\n");
}

fs::path chat_history_file() {
    const fs::path state = state_folder();
    return state.empty() ? state : state / "chat_history";
}

}  // namespace aerie
