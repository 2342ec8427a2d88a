// Properties of characters for which utf8proc has no tables.
#pragma once

namespace aerie::jinja {

// The characters that one character becomes, if they can be several; unused places are 0.
struct Expansion {
    char32_t code;
    char32_t upper[3], title[3];
};

const Expansion* expansion_of(char32_t code);  // nullptr: there is none
// Whether the character has the property Lowercase or Uppercase without being a letter of category
// Ll or Lu.
bool is_other_lower(char32_t code);
bool is_other_upper(char32_t code);
bool is_inside_words(char32_t code);  // such as an apostrophe
bool is_other_digit(char32_t code);   // such as a superscript
bool is_numeral(char32_t code);       // an ideograph for a number

}  // namespace aerie::jinja
