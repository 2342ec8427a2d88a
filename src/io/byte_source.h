// Bytes that are read from any place on request: a file, or memory.
#pragma once

#include <cstddef>
#include <span>

namespace aerie {

class ByteSource {
  public:
    virtual ~ByteSource() = default;
    virtual size_t size_bytes() const = 0;
    // Fills `out` with the bytes from `at` on; at + out.size() <= size_bytes(). Throws Error.
    virtual void read(size_t at, std::span<std::byte> out) const = 0;
};

}  // namespace aerie
