// UTF-8 from untrusted sources: repair, validity, and text made fit to print.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace aerie {

// Appends the characters of `bytes` to `out`, each maximal piece that is no UTF-8 as one U+FFFD.
// Returns how many bytes were taken: all, but for an unfinished character at the end, which is
// wrong only if `last`.
size_t append_utf8(std::string& out, std::string_view bytes, bool last);

bool is_utf8(std::string_view bytes);

// Removes the first character of `text`, which is not empty and well-formed, and returns it.
char32_t take_char(std::string_view& text);
// The other way: `code` is a character, no surrogate.
void append_char(std::string& text, char32_t code);

// What a terminal or a page obeys instead of showing it: ESC and the other control characters,
// those of 8 bits too (U+009B), and the marks that turn the direction of what follows.
bool is_control(char32_t code);

// The text with `sign` in place of each such character that is not in `kept`. Repairs UTF-8.
std::string printable(std::string_view text, std::string_view kept = "",
                      std::string_view sign = "?");

// 'text' for a one-line message: control characters become '?', a long text is cut.
std::string in_quotes(std::string_view text);

}  // namespace aerie
