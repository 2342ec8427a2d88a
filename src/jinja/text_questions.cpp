// Python's methods that ask which kinds of characters a string has.
#include "jinja/builtins.h"
#include "jinja/characters.h"
#include "jinja/strings.h"

namespace aerie::jinja {
namespace {

Value answer(const Call& call, bool (*holds)(char32_t)) {
    return make_boolean(all_of(call.workspace, call.self.text, holds), call.self.text.label);
}
Value all_letters(const Call& call) {
    return answer(call, is_letter);
}
Value all_decimals(const Call& call) {
    return answer(call, is_decimal);
}
Value all_digits(const Call& call) {
    return answer(call, is_digit);
}
Value all_numeric(const Call& call) {
    return answer(call, is_numeric);
}
Value is_identifier(const Call& call) {
    const Text text = call.self.text;
    if (text.size == 0 || !begins_identifier(first_char(text.view()))) {
        return make_boolean(false, text.label);
    }
    return answer(call, continues_identifier);
}
Value all_printable(const Call& call) {
    const bool none_else = answer(call, is_printable).boolean;
    return make_boolean(none_else || call.self.text.size == 0, call.self.text.label);
}
Value all_spaces(const Call& call) {
    return answer(call, is_space);
}
Value all_letters_or_digits(const Call& call) {
    return answer(call, [](char32_t code) { return code != '_' && is_word(code); });
}
Value all_ascii(const Call& call) {
    const bool none_else = answer(call, [](char32_t code) { return code < 0x80; }).boolean;
    return make_boolean(none_else || call.self.text.size == 0, call.self.text.label);
}
Value has_upper_case(const Call& call) {
    return make_boolean(is_cased(call.workspace, call.self.text, Case::upper));
}
Value has_lower_case(const Call& call) {
    return make_boolean(is_cased(call.workspace, call.self.text, Case::lower));
}

Value has_title_case(const Call& call) {
    return make_boolean(is_titled(call.workspace, call.self.text), call.self.text.label);
}

}  // namespace

const Builtins& text_questions() {
    static const Builtins all = {
        {"isalpha", all_letters},        {"isdigit", all_digits},
        {"isdecimal", all_decimals},     {"isnumeric", all_numeric},
        {"isspace", all_spaces},         {"isalnum", all_letters_or_digits},
        {"isascii", all_ascii},          {"isupper", has_upper_case},
        {"islower", has_lower_case},     {"istitle", has_title_case},
        {"isidentifier", is_identifier}, {"isprintable", all_printable},
    };
    return all;
}

}  // namespace aerie::jinja
