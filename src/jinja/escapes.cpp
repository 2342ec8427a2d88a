// Backslashes in the strings of a template, as Python reads them.
#include <charconv>

#include "core/utf8.h"
#include "jinja/characters.h"
#include "jinja/parser.h"

namespace aerie::jinja {
namespace {

// Reads at least `least` and at most `count` digits from the beginning of `rest`.
char32_t take_code(std::string_view& rest, size_t count, size_t least, int base, const Token& token,
                   const std::string& file) {
    uint32_t code = 0;
    const std::string_view digits = rest.substr(0, count);
    const char* end = std::from_chars(digits.data(), digits.data() + digits.size(), code, base).ptr;
    const auto taken = size_t(end - digits.data());
    const bool is_character = code < 0xD800 || (code > 0xDFFF && code <= 0x10FFFF);
    if (taken < least || !is_character) fail_at(file, token.line, "string with a wrong escape");
    rest.remove_prefix(taken);
    return code;
}

}  // namespace

std::string unescaped(const Token& token, const std::string& file) {
    constexpr std::string_view kNames = "abfnrtv", kMeanings = "\a\b\f\n\r\t\v";
    std::string text;
    for (std::string_view rest = token.text; !rest.empty();) {
        const char c = rest[0];
        rest.remove_prefix(1);
        if (c != '\\' || rest.empty()) {
            text += c;
            continue;
        }
        const char kind = rest[0];
        if (kind >= '0' && kind <= '7') {
            append_char(text, take_code(rest, 3, 1, 8, token, file));
            continue;
        }
        rest.remove_prefix(1);
        const size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
        if (digits > 0) {
            append_char(text, take_code(rest, digits, digits, 16, token, file));
        } else if (const size_t at = kNames.find(kind); at != kNames.npos) {
            text += kMeanings[at];
        } else if (kind == 'N') {
            fail_at(file, token.line,
                    "character by its name in a string: write its number, \\uXXXX or \\UXXXXXXXX");
        } else if (kind == '\\' || kind == '\'' || kind == '"') {
            text += kind;
        } else if (kind != '\n') {  // a line break is left out, anything else stays
            text += c;
            text += kind;
        }
    }
    return text;
}

}  // namespace aerie::jinja
