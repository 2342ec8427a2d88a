// Character references of HTML.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace aerie::jinja {

// `name` follows the & and includes its semicolon, if there is one: "amp;", "eacute". nullptr:
// there is no such reference.
const std::string* entity_text(std::string_view name);

// The character that &#233; stands for, with the number 233. Empty if the standard has none.
std::string numbered_character(uint32_t code);

}  // namespace aerie::jinja
