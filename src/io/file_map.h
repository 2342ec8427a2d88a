// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace aerie {

class FileMap {
  public:
    // Regular files only. Throws Error naming the file.
    static std::shared_ptr<const FileMap> open(const std::filesystem::path& path);
    ~FileMap();
    FileMap(const FileMap&) = delete;
    FileMap& operator=(const FileMap&) = delete;

    std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }
    const std::filesystem::path& path() const { return path_; }

  private:
    FileMap() = default;
    std::filesystem::path path_;
    const std::byte* data_ = nullptr;
    size_t size_bytes_ = 0;
};

// Gives back the memory that bytes of a mapped file take; reading them again costs time, no more.
void release_pages(std::span<const std::byte> bytes);

// The whole of a small text file. Throws Error if it is missing or larger than max_bytes.
std::string read_text(const std::filesystem::path& path, size_t max_bytes);

}  // namespace aerie
