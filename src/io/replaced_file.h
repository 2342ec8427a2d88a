// A text file that appears at once, or not at all.
#pragma once

#include <filesystem>
#include <string>

namespace aerie {

// Made before long work, so that a place which cannot be written to is refused early: an empty file
// beside the final one, which has its name only after commit. What is no regular file (/dev/stdout,
// a pipe) is written directly.
class ReplacedFile {
  public:
    // Throws Error naming the file.
    explicit ReplacedFile(const std::filesystem::path& path);
    ~ReplacedFile();  // without a commit nothing stays
    ReplacedFile(const ReplacedFile&) = delete;
    ReplacedFile& operator=(const ReplacedFile&) = delete;

    void commit(const std::string& text);  // throws Error

  private:
    [[noreturn]] void fail(int error) const;

    std::filesystem::path path_, fresh_;  // fresh_: what is written
};

}  // namespace aerie
