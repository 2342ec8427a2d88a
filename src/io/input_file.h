// Files are read, never mapped: another program may cut a file short at any time, and that must be
// an error of one line, not a signal.
#pragma once

#include <filesystem>
#include <string>

#include "core/platform.h"
#include "io/byte_source.h"

namespace aerie {

class InputFile final : public ByteSource {
  public:
    // Regular files only. Throws Error naming the file.
    explicit InputFile(const std::filesystem::path& path);

    size_t size_bytes() const override { return size_bytes_; }  // as it was when opened
    // The stamps of the file when it was opened, and now. Throws Error naming the file.
    const platform::FileStamp& first_stamp() const { return first_stamp_; }
    platform::FileStamp stamp() const;
    const std::filesystem::path& path() const { return path_; }
    // Throws Error naming the file, also if it has become shorter since it was opened.
    void read(size_t at, std::span<std::byte> out) const override;

  private:
    std::filesystem::path path_;
    platform::Handle file_;
    size_t size_bytes_ = 0;
    platform::FileStamp first_stamp_;
};

// The whole of a small text file, without a byte order mark at its start. Throws Error if it is
// missing or larger than max_bytes.
std::string read_text(const std::filesystem::path& path, size_t max_bytes);

}  // namespace aerie
