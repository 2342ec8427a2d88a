// A file that appears at once, or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace aerie {

// Made before long work, so that a place which cannot be written to is refused early; nothing is
// there until the commit. What is no regular file (/dev/stdout, a pipe) is written directly.
class ReplacedFile {
  public:
    // Throws Error naming the file.
    explicit ReplacedFile(const std::filesystem::path& path);

    void commit(std::string_view bytes) const;  // throws Error

  private:
    [[noreturn]] void fail(int error) const;
    void write_directly(std::string_view bytes) const;

    std::filesystem::path path_;
    bool is_regular_ = true;
};

}  // namespace aerie
