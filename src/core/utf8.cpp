// UTF-8 repair by table 3-7 of the Unicode standard (well-formed byte sequences).
#include "core/utf8.h"

#include <cstdint>

namespace aerie {
namespace {

struct Char {
    size_t length = 1;  // bytes of the character, or of the malformed part
    bool valid = false;
    bool unfinished = false;  // more bytes could make it valid
};

// `bytes` must not be empty.
Char first_char(std::string_view bytes) {
    const uint8_t lead = bytes[0];
    if (lead < 0x80) return {1, true, false};
    if (lead < 0xC2 || lead > 0xF4) return {};
    const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    // Only the range of the second byte depends on the lead byte. This excludes overlong forms,
    // surrogates, and codes above U+10FFFF.
    uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    for (size_t i = 1; i < length; ++i) {
        if (i == bytes.size()) return {i, false, true};
        const uint8_t byte = bytes[i];
        if (byte < low || byte > high) return {i, false, false};
        low = 0x80;
        high = 0xBF;
    }
    return {length, true, false};
}

}  // namespace

size_t append_utf8(std::string& out, std::string_view bytes, bool last) {
    size_t taken = 0;
    while (taken < bytes.size()) {
        const Char next = first_char(bytes.substr(taken));
        if (next.unfinished && !last) break;
        if (next.valid) {
            out.append(bytes.substr(taken, next.length));
        } else {
            out.append("\xEF\xBF\xBD");
        }
        taken += next.length;
    }
    return taken;
}

bool is_utf8(std::string_view bytes) {
    while (!bytes.empty()) {
        const Char next = first_char(bytes);
        if (!next.valid) return false;
        bytes.remove_prefix(next.length);
    }
    return true;
}

char32_t take_char(std::string_view& text) {
    const uint8_t lead = text[0];
    const size_t length = first_char(text).length;
    char32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
    for (size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<uint8_t>(text[i]) & 0x3F);
    text.remove_prefix(length);
    return code;
}

void append_char(std::string& text, char32_t code) {
    if (code < 0x80) {
        text += char(code);
        return;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;  // bytes after the first
    constexpr uint8_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
    text += char(kLead[more] | code >> (6 * more));
    for (int left = more - 1; left >= 0; --left) {
        text += char(0x80 | (code >> (6 * left) & 0x3F));
    }
}

bool is_control(char32_t code) {
    return code < 0x20 || (code >= 0x7F && code <= 0x9F) || (code >= 0x202A && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069);
}

std::string_view without_byte_order_mark(std::string_view text) {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";
    if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
    return text;
}

std::string printable(std::string_view text, std::string_view kept, std::string_view sign) {
    std::string clean, shown;
    append_utf8(clean, text, true);
    for (std::string_view rest = clean; !rest.empty();) {
        const std::string_view whole = rest;
        const char32_t code = take_char(rest);
        const std::string_view bytes = whole.substr(0, whole.size() - rest.size());
        shown += is_control(code) && kept.find(bytes) == kept.npos ? sign : bytes;
    }
    return shown;
}

std::string in_quotes(std::string_view text) {
    constexpr size_t kMaxBytes = 120;
    return "'" + printable(text.substr(0, kMaxBytes)) + (text.size() > kMaxBytes ? "...'" : "'");
}

}  // namespace aerie
