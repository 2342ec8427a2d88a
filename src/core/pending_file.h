// Files and folders that appear complete or not at all: they are written beside their place under
// another name, and then renamed.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/platform.h"

namespace aerie {

// Access to a new file: by the user's umask, or for the user alone. A file that is replaced passes
// its mode and group on; to a private file only if it belongs to the user.
enum class FileAccess { as_usual, owner };

// A new file or folder with a random name. It is removed unless finish() succeeds. The remains of a
// killed program are removed by the next one that writes to the same place.
class PendingFile {
  public:
    enum class Kind { file, folder };

    // Throws Error naming `place`.
    PendingFile(const std::filesystem::path& place, Kind kind,
                FileAccess access = FileAccess::as_usual);
    ~PendingFile();
    PendingFile(const PendingFile&) = delete;
    PendingFile& operator=(const PendingFile&) = delete;

    const std::filesystem::path& path() const { return path_; }  // valid until it is finished
    void write(std::string_view bytes);                          // appends to a file; throws Error
    // Flushes to the disk, then moves to `place`, where an existing file is replaced. Throws Error.
    void finish();

  private:
    [[noreturn]] void fail(int error) const;

    std::filesystem::path place_, path_;
    Kind kind_;
    FileAccess access_;
    platform::Handle handle_;  // claims path_
};

}  // namespace aerie
