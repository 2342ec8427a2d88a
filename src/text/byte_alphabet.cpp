// The two spellings of bytes: GPT-2's characters, SentencePiece's "<0x0A>".
#include "text/byte_alphabet.h"

#include <array>

#include "core/utf8.h"

namespace aerie {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

bool stands_for_itself(int byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Table {
    std::array<char32_t, 256> character{};
    std::array<int, 512> byte{};  // -1: none

    Table() {
        byte.fill(-1);
        char32_t next = 0x100;
        for (int value = 0; value < 256; ++value) {
            character[size_t(value)] = stands_for_itself(value) ? char32_t(value) : next++;
            byte[character[size_t(value)]] = value;
        }
    }
};

const Table& table() {
    static const Table table;
    return table;
}

}  // namespace

char32_t character_of_byte(uint8_t byte) {
    return table().character[byte];
}

std::optional<std::string> bytes_of_token(std::string_view token) {
    std::string bytes;
    while (!token.empty()) {
        const char32_t code = take_char(token);
        const int byte = code < table().byte.size() ? table().byte[code] : -1;
        if (byte < 0) return std::nullopt;
        bytes += char(byte);
    }
    return bytes;
}

int byte_of_token(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
    const size_t high = kDigits.find(token[3]), low = kDigits.find(token[4]);
    if (high == kDigits.npos || low == kDigits.npos) return -1;
    return int(16 * high + low);
}

std::string byte_token(uint8_t byte) {
    return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + '>';
}

}  // namespace aerie
