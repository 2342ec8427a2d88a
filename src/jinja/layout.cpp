// Digits, signs and padding.
#include "jinja/layout.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/utf8.h"
#include "jinja/characters.h"
#include "jinja/print.h"
#include "jinja/strings.h"

namespace aerie::jinja {
namespace {

constexpr size_t kBufferSize = 512;  // a double has at most 309 digits before its point

bool is_one_of(char c, std::string_view all) {
    return c != '\0' && all.find(c) != all.npos;
}

std::string digits_of(double value, std::chars_format format, int64_t precision) {
    char buffer[kBufferSize];
    return {buffer,
            std::to_chars(buffer, buffer + sizeof(buffer), value, format, int(precision)).ptr};
}

// The digits of str(), but at most `precision` of them, and at least one after the point.
std::string short_digits(double value, int64_t precision) {
    precision = std::max<int64_t>(precision, 1);
    const std::string exact = digits_of(value, std::chars_format::scientific, precision - 1);
    const size_t mark = exact.find('e');
    if (mark == exact.npos) return exact;  // inf, nan
    const int exponent = std::stoi(exact.substr(mark + 1));
    if (exponent >= -4 && exponent < precision - 1) {
        const std::string digits = digits_of(value, std::chars_format::general, precision);
        return digits.find('.') == digits.npos ? digits + ".0" : digits;
    }
    std::string mantissa = exact.substr(0, mark);
    if (mantissa.find('.') != mantissa.npos) {
        mantissa.erase(mantissa.find_last_not_of('0') + 1);
        if (mantissa.ends_with('.')) mantissa.pop_back();
    }
    return mantissa + exact.substr(mark);
}

std::string real_digits(double value, const Layout& layout) {
    constexpr int64_t kUsual = 6;
    const int64_t precision = layout.precision < 0 ? kUsual : layout.precision;
    switch (layout.type) {
        case 'f':
        case 'F':
            return digits_of(value, std::chars_format::fixed, precision);
        case '%':
            return digits_of(value * 100, std::chars_format::fixed, precision) + "%";
        case 'e':
        case 'E':
            return digits_of(value, std::chars_format::scientific, precision);
        case '\0':
            return layout.precision < 0 ? repr_of(value) : short_digits(value, layout.precision);
        default:
            return digits_of(value, std::chars_format::general, precision);
    }
}

std::string whole_digits(uint64_t size, const Layout& layout) {
    char buffer[kBufferSize];
    const int base = is_one_of(layout.type, "xX") ? 16
                     : layout.type == 'o'         ? 8
                     : layout.type == 'b'         ? 2
                                                  : 10;
    const std::string digits(buffer,
                             std::to_chars(buffer, buffer + sizeof(buffer), size, base).ptr);
    const size_t least = size_t(std::max<int64_t>(layout.precision, 0));
    return std::string(least - std::min(least, digits.size()), '0') + digits;
}

// The digits of the magnitude, without a sign.
std::string digits_of(const Value& value, const Layout& layout) {
    const bool is_real = is_one_of(layout.type, "eEfFgG%") ||
                         (value.is(Kind::real) && is_one_of(layout.type, "n")) ||
                         (value.is(Kind::real) && layout.type == '\0');
    std::string digits;
    if (is_real) {
        digits = real_digits(std::abs(value.number()), layout);
    } else {
        if (value.is(Kind::real) && !(std::abs(value.real) < 9e18))
            throw Fault("number too large for %d");
        const int64_t whole = value.is(Kind::real) ? int64_t(value.real) : value.whole();
        digits = whole_digits(whole < 0 ? 0 - uint64_t(whole) : uint64_t(whole), layout);
    }
    if (is_one_of(layout.type, "XEFG"))
        std::transform(digits.begin(), digits.end(), digits.begin(), ::toupper);
    return digits;
}

std::string grouped(std::string digits, const Layout& layout) {
    if (layout.group == '\0') return digits;
    const size_t size = is_one_of(layout.type, "boxX") ? 4 : 3;
    size_t end = 0;
    while (end < digits.size() && std::isxdigit(static_cast<unsigned char>(digits[end])) &&
           (is_one_of(layout.type, "xX") || digits[end] <= '9'))
        ++end;
    for (size_t at = end; at > size;) digits.insert(at -= size, 1, layout.group);
    return digits;
}

std::string sign_of(const Value& value, const Layout& layout) {
    const bool minus = value.is(Kind::real) ? std::signbit(value.real) && !std::isnan(value.real)
                                            : value.whole() < 0;
    std::string sign = minus ? "-" : layout.sign == '-' ? "" : std::string(1, layout.sign);
    if (layout.prefixed && is_one_of(layout.type, "boxX")) sign += {'0', layout.type};
    return sign;
}

// Pads up to the width on the side that `align` says; the first `begin` bytes of the text are its
// sign.
void add_filled(TextBuilder& out, Workspace& workspace, const Text& text, const Layout& layout,
                char align, size_t begin) {
    const auto missing =
        std::max<int64_t>(layout.width - int64_t(char_count(workspace, text.view())), 0);
    const Text fill = layout.fill.size > 0 ? layout.fill : text_of(" ", layout.label);
    const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
    if (align != '=') begin = 0;
    out.add(text.part(0, begin));
    for (int64_t i = 0; i < left; ++i) out.add(fill);
    out.add(text.part(begin, text.size - begin));
    for (int64_t i = left; i < missing; ++i) out.add(fill);
}

}  // namespace

char Cursor::take() {
    if (at_end()) throw Fault("incomplete format");
    return pattern_.data[at_++];
}

Text Cursor::take_part(size_t bytes) {
    if (bytes > pattern_.size - at_) throw Fault("incomplete format");
    at_ += bytes;
    return pattern_.part(at_ - bytes, bytes);
}

bool Cursor::skip(char expected) {
    if (at_end() || peek() != expected) return false;
    ++at_;
    return true;
}

int64_t Cursor::number(int64_t limit, int64_t otherwise) {
    if (peek() < '0' || peek() > '9') return otherwise;
    int64_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
        value = value * 10 + (take() - '0');
        if (value > limit) throw Fault("format wider than " + std::to_string(limit));
    }
    return value;
}

Text Cursor::until(std::string_view ends) {
    const size_t found = pattern_.view().find_first_of(ends, at_);
    return take_part((found == std::string_view::npos ? pattern_.size : found) - at_);
}

void add_number(TextBuilder& out, Workspace& workspace, const Value& value, const Layout& layout) {
    if (!value.is_number())
        throw Fault("a number is needed to format, not " + std::string(type_name(value)));
    const std::string sign = sign_of(value, layout);
    std::string digits = digits_of(value, layout);
    const bool fills_zeros = layout.zeros && layout.align == '\0';
    const size_t room = fills_zeros ? size_t(layout.width) : 0;
    while (sign.size() + grouped(digits, layout).size() < room) {
        const size_t missing = room - sign.size() - grouped(digits, layout).size();
        digits.insert(0, layout.group == '\0' ? missing : 1, '0');
    }
    const Text text =
        workspace.copy(sign + grouped(digits, layout), std::max(value.label, layout.label));
    add_filled(out, workspace, text, layout, layout.align ? layout.align : '>', sign.size());
}

void add_string(TextBuilder& out, Workspace& workspace, Text text, const Layout& layout) {
    if (layout.precision >= 0) text = characters(workspace, text, 0, size_t(layout.precision));
    add_filled(out, workspace, text, layout, layout.align ? layout.align : '<', 0);
}

Text character_of(Workspace& workspace, const Value& value) {
    const int64_t code = value.is_whole() ? value.whole() : -1;
    if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        throw Fault("a character has a number from 0 to 0x10FFFF");
    std::string text;
    append_char(text, char32_t(code));
    return workspace.copy(text, value.label);
}

Text ascii_repr(Workspace& workspace, const Value& value) {
    const Text whole = to_repr(workspace, value);
    TextBuilder out(workspace);
    for (size_t at = 0; at < whole.size;) {
        const size_t size = char_size(whole.data[at]);
        const char32_t code = first_char(whole.view().substr(at));
        if (size == 1) {
            out.add(whole.part(at, 1));
        } else {
            char buffer[12];
            const char* format = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
            std::snprintf(buffer, sizeof(buffer), format, unsigned(code));
            out.add(buffer, whole.label);
        }
        at += size;
    }
    return out.text();
}

}  // namespace aerie::jinja
