// UTF-8 from untrusted sources: repair, validity, and names made fit to print.
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

// 'text' for a one-line message: control characters become '?', a long text is cut.
std::string in_quotes(std::string_view text);

}  // namespace aerie
