// Character references of HTML.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace aerie::jinja {

// `name` stands after & and has its semicolon, if there is one: "amp;", "eacute". nullptr: it is
// none.
const std::string* entity_text(std::string_view name);

// The character of &#233; is that of 233. Empty where the standard has none.
std::string numbered_character(uint32_t code);

}  // namespace aerie::jinja
