// Finds where the numbers of a template end.
#include <cctype>

#include "jinja/lexer.h"

namespace aerie::jinja {
namespace {

bool is_digit_of(char c, int base) {
    return base == 16 ? std::isxdigit(static_cast<unsigned char>(c)) != 0
                      : c >= '0' && c < '0' + base;
}

// The number of bytes of digits at this place, with single underscores between them.
size_t digits_at(std::string_view text, size_t at, int base) {
    size_t end = at;
    const auto is_digit = [&](size_t place) {
        return place < text.size() && is_digit_of(text[place], base);
    };
    while (is_digit(end) ||
           (end > at && end < text.size() && text[end] == '_' && is_digit(end + 1)))
        ++end;
    return end - at;
}

}  // namespace

NumberText number_text(std::string_view text, bool is_member) {
    const char letter = text.size() > 1 && text[0] == '0' ? char(text[1] | 0x20) : '\0';
    if (letter == 'x' || letter == 'o' || letter == 'b') {
        const size_t digits = digits_at(text, 2, letter == 'x' ? 16 : letter == 'o' ? 8 : 2);
        return {digits == 0 ? 0 : 2 + digits, false};
    }
    NumberText number{digits_at(text, 0, 10), false};
    if (is_member) return number;
    const auto take_if = [&](size_t skipped) {  // digits behind so many characters
        const size_t digits = digits_at(text, number.size + skipped, 10);
        if (digits == 0) return;
        number.size += skipped + digits;
        number.is_real = true;
    };
    if (text.substr(number.size).starts_with('.')) take_if(1);
    const std::string_view more = text.substr(number.size, 2);
    if (!more.empty() && (more[0] | 0x20) == 'e') {
        const bool has_sign = more.size() == 2 && (more[1] == '-' || more[1] == '+');
        take_if(has_sign ? 2 : 1);
    }
    return number;
}

}  // namespace aerie::jinja
