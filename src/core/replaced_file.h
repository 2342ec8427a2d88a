// A file that appears at once, or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "core/partial.h"

namespace aerie {

// Made before long work, so that a place which cannot be written to is refused early; nothing is
// there until the commit. What is no regular file (/dev/stdout, a pipe) is written directly.
class ReplacedFile {
  public:
    // Throws Error naming the file.
    explicit ReplacedFile(const std::filesystem::path& path,
                          FileAccess access = FileAccess::as_usual);

    void commit(std::string_view bytes) const;  // throws Error
    // Bytes that come in pieces: `produce` calls what it is given with each.
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
