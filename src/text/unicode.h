// Properties and normal forms of characters, as Unicode defines them.
#pragma once

#include <string>
#include <string_view>

namespace aerie {

bool is_white_space(char32_t code);     // the property White_Space
bool is_word_character(char32_t code);  // letters, marks, digits, connectors: \w of UTS 18

enum class NormalForm { nfc, nfd, nfkc, nfkd };
// `text` is well-formed UTF-8. Takes time proportional to n log n. Throws Error.
std::string normal_form(std::string_view text, NormalForm form);

}  // namespace aerie
