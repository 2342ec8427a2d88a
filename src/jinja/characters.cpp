// Characters by the tables of utf8proc, and a search that is linear for every text.
#include "jinja/characters.h"

#include <utf8proc.h>

#include <iterator>

#include "core/utf8.h"
#include "jinja/letter_tables.h"

namespace aerie::jinja {
namespace {

std::string text_of_char(utf8proc_int32_t code) {
    std::string text;
    append_char(text, char32_t(code));
    return text;
}

std::string text_of_chars(const char32_t (&codes)[3]) {
    std::string text;
    for (const char32_t code : codes) {
        if (code != 0) append_char(text, code);
    }
    return text;
}

utf8proc_category_t category(char32_t code) {
    return utf8proc_category(utf8proc_int32_t(code));
}

}  // namespace

size_t char_count(Workspace& workspace, std::string_view text) {
    workspace.touch(text.size());
    size_t count = 0;
    for (const char byte : text) count += (byte & 0xC0) != 0x80 ? 1 : 0;
    return count;
}

size_t byte_of_char(std::string_view text, size_t index) {
    size_t at = 0;
    for (; index > 0 && at < text.size(); --index) at += char_size(text[at]);
    return at;
}

char32_t first_char(std::string_view text) {
    return take_char(text);
}

char32_t last_char(std::string_view text) {
    size_t at = text.size() - 1;
    while ((text[at] & 0xC0) == 0x80) --at;
    return first_char(text.substr(at));
}

bool is_space(char32_t code) {
    if (code < 0x80) return code == ' ' || (code >= 9 && code <= 13) || (code >= 28 && code <= 31);
    const utf8proc_category_t kind = category(code);
    return code == 0x85 || kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL ||
           kind == UTF8PROC_CATEGORY_ZP;
}

bool is_line_break(char32_t code) {
    return (code >= 10 && code <= 13) || (code >= 28 && code <= 30) || code == 0x85 ||
           code == 0x2028 || code == 0x2029;
}

bool is_letter(char32_t code) {
    const utf8proc_category_t kind = category(code);
    return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t code) {
    return category(code) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(char32_t code) {
    return is_decimal(code) || is_other_digit(code);
}

bool is_numeric(char32_t code) {
    const utf8proc_category_t kind = category(code);
    return (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO) || is_numeral(code);
}

bool begins_identifier(char32_t code) {
    const utf8proc_category_t kind = category(code);
    return code == '_' || is_letter(code) || kind == UTF8PROC_CATEGORY_NL;
}

bool continues_identifier(char32_t code) {
    const utf8proc_category_t kind = category(code);
    return begins_identifier(code) || kind == UTF8PROC_CATEGORY_MN ||
           kind == UTF8PROC_CATEGORY_MC || kind == UTF8PROC_CATEGORY_ND ||
           kind == UTF8PROC_CATEGORY_PC;
}

bool is_word(char32_t code) {
    const utf8proc_category_t kind = category(code);
    return code == '_' || is_letter(code) ||
           (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO);
}

bool is_printable(char32_t code) {
    const utf8proc_category_t kind = category(code);
    return code == ' ' || (kind != UTF8PROC_CATEGORY_CN && kind < UTF8PROC_CATEGORY_ZS);
}

bool is_upper(char32_t code) {
    return category(code) == UTF8PROC_CATEGORY_LU || is_other_upper(code);
}

bool is_lower(char32_t code) {
    return category(code) == UTF8PROC_CATEGORY_LL || is_other_lower(code);
}

bool is_title(char32_t code) {
    return category(code) == UTF8PROC_CATEGORY_LT;
}

bool is_cased(char32_t code) {
    return is_lower(code) || is_upper(code) || is_title(code);
}

bool is_case_ignorable(char32_t code) {
    switch (category(code)) {
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_ME:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_SK:
            return true;
        default:
            return is_inside_words(code);
    }
}

std::string upper_of(char32_t code) {
    if (const Expansion* expansion = expansion_of(code)) return text_of_chars(expansion->upper);
    return text_of_char(utf8proc_toupper(utf8proc_int32_t(code)));
}

std::string title_of(char32_t code) {
    if (const Expansion* expansion = expansion_of(code)) return text_of_chars(expansion->title);
    return text_of_char(utf8proc_totitle(utf8proc_int32_t(code)));
}

std::string lower_of(char32_t code) {
    if (code == 0x130) return "i\xCC\x87";
    return text_of_char(utf8proc_tolower(utf8proc_int32_t(code)));
}

std::string folded(char32_t code) {
    utf8proc_int32_t codes[8];
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        utf8proc_int32_t(code), codes, std::size(codes), UTF8PROC_CASEFOLD, &boundary);
    std::string text;
    for (utf8proc_ssize_t i = 0; i < count; ++i) append_char(text, char32_t(codes[i]));
    return text;
}

// Uses Knuth, Morris and Pratt's algorithm where trying every place could take long.
size_t find_text(Workspace& workspace, std::string_view text, std::string_view part, size_t from) {
    constexpr size_t kShort = 16;
    if (from > text.size()) return text.npos;
    if (part.size() <= kShort || text.size() - from < part.size()) {
        const size_t at = text.find(part, from);
        workspace.touch((at == text.npos ? text.size() : at) - from);
        return at;
    }
    workspace.touch(text.size() - from + part.size() * sizeof(uint32_t));
    std::vector<uint32_t> border(part.size(), 0);  // longest proper border of each prefix
    for (size_t i = 1, length = 0; i < part.size(); ++i) {
        while (length > 0 && part[i] != part[length]) length = border[length - 1];
        if (part[i] == part[length]) ++length;
        border[i] = uint32_t(length);
    }
    for (size_t i = from, length = 0; i < text.size(); ++i) {
        while (length > 0 && text[i] != part[length]) length = border[length - 1];
        if (text[i] == part[length]) ++length;
        if (length == part.size()) return i + 1 - length;
    }
    return text.npos;
}

}  // namespace aerie::jinja
