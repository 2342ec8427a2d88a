// Single characters and plain searching: Python's view of Unicode, by the tables of utf8proc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "jinja/workspace.h"

namespace aerie::jinja {

// Bytes of a character in well-formed UTF-8, by its first byte.
inline size_t char_size(char first) {
    const auto byte = static_cast<unsigned char>(first);
    return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}
size_t char_count(Workspace& workspace, std::string_view text);
// The byte where character `index` begins; the size of the text if it has fewer characters.
size_t byte_of_char(std::string_view text, size_t index);
char32_t first_char(std::string_view text);  // the text is not empty
char32_t last_char(std::string_view text);   // the text is not empty

bool is_space(char32_t code);              // str.isspace
bool is_line_break(char32_t code);         // str.splitlines
bool is_letter(char32_t code);             // str.isalpha
bool is_decimal(char32_t code);            // str.isdecimal
bool is_digit(char32_t code);              // str.isdigit
bool is_numeric(char32_t code);            // str.isnumeric
bool begins_identifier(char32_t code);     // str.isidentifier, by general categories alone
bool continues_identifier(char32_t code);  // the same
bool is_word(char32_t code);               // \w
bool is_printable(char32_t code);          // str.isprintable
// The properties Uppercase, Lowercase, Cased and Case_Ignorable, and titlecase letters.
bool is_upper(char32_t code);
bool is_lower(char32_t code);
bool is_title(char32_t code);
bool is_cased(char32_t code);
bool is_case_ignorable(char32_t code);

// The result may be several characters.
std::string upper_of(char32_t code);
std::string title_of(char32_t code);
std::string lower_of(char32_t code);  // a character alone: a capital sigma is never final
std::string folded(char32_t code);    // str.casefold

// Byte of the first `part` at or after `from`, in linear time; npos if there is none.
size_t find_text(Workspace& workspace, std::string_view text, std::string_view part,
                 size_t from = 0);

}  // namespace aerie::jinja
