// Patterns of tokenizer.json (Oniguruma's syntax) written for PCRE2.
#pragma once

#include <string>
#include <string_view>

namespace aerie {

// The same pattern for PCRE2 with UTF, UCP and MULTILINE. \s, \w, \b mean what Unicode says, also
// inside classes (PCRE2's \s has U+180E, its \w lacks marks). Throws Error, one line that names no
// file, for syntax that means another thing there, or that nothing here knows.
std::string pcre_pattern(std::string_view pattern);

}  // namespace aerie
