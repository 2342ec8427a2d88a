// Numbers and texts in the encoding of GGUF files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace aerie {

// Appends the lowest `bytes` bytes of a number, little-endian.
inline void append_number(std::string& out, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) out += char(uint8_t(value >> (8 * i)));
}

// Appends the length in 8 bytes, then the text.
inline void append_text(std::string& out, std::string_view text) {
    append_number(out, text.size(), 8);
    out += text;
}

}  // namespace aerie
