// Reads the header of a GGUF file from front to back, and counts the memory that its contents take.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/byte_source.h"

namespace aerie {

class GgufCursor {
  public:
    GgufCursor(const ByteSource& source, const std::string& file) : source_(source), file_(file) {}

    size_t at() const { return at_; }  // file offset of the next byte
    size_t left() const { return source_.size_bytes() - at_; }
    const std::string& file() const { return file_; }

    // Read what follows, in file order. `what` names it in errors. Throw Error if the file ends
    // before that.
    void take(std::span<std::byte> out, const std::string& what);
    uint64_t integer(size_t bytes, const std::string& what);  // little-endian, at most 8 bytes
    // Appends a string's bytes to `out`; returns how many. Throws Error also beyond `most`.
    size_t append_string(std::string& out, size_t most, const std::string& what);

    // Counts memory before it is taken for header contents. Throws Error beyond 100 MB in all.
    void keep(size_t bytes);

    [[noreturn]] void fail(const std::string& why) const;  // throws Error: the file's name, and why

  private:
    void refill();
    [[noreturn]] void fail_short(const std::string& what) const;  // the file ends within `what`

    const ByteSource& source_;
    const std::string& file_;
    std::vector<std::byte> window_;  // bytes of the file from window_at_ on
    size_t window_at_ = 0;
    size_t at_ = 0;
    size_t kept_ = 0;
};

}  // namespace aerie
