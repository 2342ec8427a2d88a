// Translates patterns of tokenizer.json (Oniguruma's syntax) for PCRE2.
#pragma once

#include <string>
#include <string_view>

namespace aerie {

// The same pattern for PCRE2 with UTF, UCP and MULTILINE. \s, \w and \b follow Unicode, also inside
// classes (PCRE2's \s has U+180E, its \w lacks marks). Throws Error, one line that names no file,
// for syntax that means something else in PCRE2 or is not supported.
std::string pcre_pattern(std::string_view pattern);

}  // namespace aerie
