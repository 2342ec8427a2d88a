// UTF-8 from untrusted sources: repair, validation, and text that is safe to print.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace aerie {

// Appends the characters of `bytes` to `out`, and one U+FFFD for each maximal malformed part.
// Returns the number of bytes taken: all, except an unfinished character at the end, which is
// malformed only if `last`.
size_t append_utf8(std::string& out, std::string_view bytes, bool last);

bool is_utf8(std::string_view bytes);

// The text without a byte order mark (U+FEFF) at its start: editors put it before a file's text.
// Elsewhere it is a character.
std::string_view without_byte_order_mark(std::string_view text);

// Removes the first character of `text`, which must be well-formed and not empty, and returns it.
char32_t take_char(std::string_view& text);
// Appends a character; `code` must not be a surrogate.
void append_char(std::string& text, char32_t code);

// Whether a terminal or a page obeys this character instead of showing it: ESC and other control
// characters, also those of 8 bits (U+009B), and marks that change the direction of text.
bool is_control(char32_t code);

// The text with each control character that is not in `kept` replaced by `sign`. Repairs UTF-8.
std::string printable(std::string_view text, std::string_view kept = "",
                      std::string_view sign = "?");

// 'text' in quotes for a one-line message: control characters become '?', and a long text is cut.
std::string in_quotes(std::string_view text);

}  // namespace aerie
