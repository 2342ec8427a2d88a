// What is being written lies beside its place until it is whole; then it is there at once.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/platform.h"

namespace aerie {

// Who may read a new file: whoever the user's umask lets, or the user alone. A file that is
// replaced hands its mode and its group on; to a private file only if it is the user's own.
enum class FileAccess { as_usual, owner };

// A new file or folder, under a name that nobody can guess. It is removed unless it is finished.
// What a killed program left is removed by the next one that writes to the same place.
class Partial {
  public:
    enum class Kind { file, folder };

    // Throws Error naming `place`.
    Partial(const std::filesystem::path& place, Kind kind,
            FileAccess access = FileAccess::as_usual);
    ~Partial();
    Partial(const Partial&) = delete;
    Partial& operator=(const Partial&) = delete;

    const std::filesystem::path& path() const { return path_; }  // as long as it is not finished
    void write(std::string_view bytes);  // to the end of a file; throws Error
    // Onto the disk, then to its place; a file that is there is replaced. Throws Error.
    void finish();

  private:
    [[noreturn]] void fail(int error) const;

    std::filesystem::path place_, path_;
    Kind kind_;
    FileAccess access_;
    platform::Handle handle_;  // claims it
};

}  // namespace aerie
