// A file that appears as a whole, or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "core/pending_file.h"

namespace aerie {

// Is constructed before long work, so that a place that cannot be written is refused early; the
// file appears with the commit. A target that is not a regular file (/dev/stdout, a pipe) is
// written directly.
class ReplacedFile {
  public:
    // Throws Error naming the file.
    explicit ReplacedFile(const std::filesystem::path& path,
                          FileAccess access = FileAccess::as_usual);

    void commit(std::string_view bytes) const;  // throws Error
    // Writes bytes in pieces: `produce` calls its argument with each piece.
    using Write = std::function<void(std::string_view)>;
    void commit(const std::function<void(const Write&)>& produce) const;

  private:
    [[noreturn]] void fail(int error) const;
    void write_directly(const std::function<void(const Write&)>& produce) const;

    std::filesystem::path path_;
    FileAccess access_;
    bool is_regular_ = true;
};

}  // namespace aerie
