// Python's two ways to format.
#include "text/jinja/format.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "text/jinja/characters.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/strings.h"

namespace aerie::jinja {
namespace {

constexpr int64_t kMaxWidth = 4096;
constexpr int64_t kMaxPrecision = 100;

struct Layout {
    Label label = kTemplate;  // of the pattern: it chooses how a number is written
    bool zeros = false, sign = false, space = false, grouped = false;
    char align = 0;  // < > ^, 0: as is usual for the value
    Text fill = {};
    int64_t width = 0;
    int64_t precision = -1;
    char type = 's';
};

// Reads a pattern from left to right, by bytes that are ASCII.
class Cursor {
  public:
    explicit Cursor(const Text& pattern) : pattern_(pattern) {}
    bool at_end() const { return at_ == pattern_.size; }
    char peek() const { return at_end() ? '\0' : pattern_.data[at_]; }
    char take() {
        if (at_end()) throw Fault("incomplete format");
        return pattern_.data[at_++];
    }
    bool skip(char expected) {
        if (peek() != expected) return false;
        ++at_;
        return true;
    }
    Text take_part(size_t bytes) { return pattern_.part((at_ += bytes) - bytes, bytes); }
    int64_t number(int64_t limit, int64_t otherwise) {
        if (peek() < '0' || peek() > '9') return otherwise;
        int64_t value = 0;
        while (peek() >= '0' && peek() <= '9') {
            value = value * 10 + (take() - '0');
            if (value > limit) throw Fault("format wider than " + std::to_string(limit));
        }
        return value;
    }
    // What lies before the next of these characters, or the end.
    Text until(std::string_view ends) {
        const size_t found = pattern_.view().find_first_of(ends, at_);
        const size_t end = found == std::string_view::npos ? pattern_.size : found;
        const Text part = pattern_.part(at_, end - at_);
        at_ = end;
        return part;
    }

  private:
    const Text& pattern_;
    size_t at_ = 0;
};

std::string digits_of(const Value& value, const Layout& layout) {
    char buffer[512];  // a double has at most 309 digits before its point
    char* const end = buffer + sizeof(buffer);
    if (std::string_view("feEgG").find(layout.type) != std::string_view::npos) {
        const auto format = layout.type == 'f' ? std::chars_format::fixed
                            : layout.type == 'e' || layout.type == 'E'
                                ? std::chars_format::scientific
                                : std::chars_format::general;
        const int precision = layout.precision < 0 ? 6 : int(layout.precision);
        return {buffer,
                std::to_chars(buffer, end, std::abs(value.number()), format, precision).ptr};
    }
    if (value.is(Kind::real) && !(std::abs(value.real) < 9e18))
        throw Fault("number too large for %d");
    const int64_t whole = value.is(Kind::real) ? int64_t(value.real) : value.whole();
    const uint64_t size = whole < 0 ? 0 - uint64_t(whole) : uint64_t(whole);
    const int base = layout.type == 'x' || layout.type == 'X' ? 16 : layout.type == 'o' ? 8 : 10;
    std::string digits(buffer, std::to_chars(buffer, end, size, base).ptr);
    if (layout.type == 'X') std::transform(digits.begin(), digits.end(), digits.begin(), ::toupper);
    return digits;
}

void group_thousands(std::string& digits) {
    const size_t point = std::min(digits.find('.'), digits.size());
    for (size_t at = point; at > 3;) digits.insert(at -= 3, ",");
}

Text number_text(Workspace& workspace, const Value& value, const Layout& layout) {
    if (!value.is_number())
        throw Fault("a number is needed to format, not " + std::string(type_name(value)));
    std::string digits = digits_of(value, layout);
    if (layout.grouped) group_thousands(digits);
    const bool minus = value.is(Kind::real) ? std::signbit(value.real) : value.whole() < 0;
    const std::string sign = minus ? "-" : layout.sign ? "+" : layout.space ? " " : "";
    const size_t present = sign.size() + digits.size();
    const size_t zeros =
        layout.zeros && size_t(layout.width) > present ? size_t(layout.width) - present : 0;
    return workspace.copy(sign + std::string(zeros, '0') + digits,
                          std::max(value.label, layout.label));
}

void add_laid_out(TextBuilder& out, Workspace& workspace, const Value& value,
                  const Layout& layout) {
    constexpr std::string_view kOfNumbers = "dixXofeEgG";
    const bool is_numeric = kOfNumbers.find(layout.type) != kOfNumbers.npos;
    Text text;
    if (is_numeric) {
        text = number_text(workspace, value, layout);
    } else {
        text = layout.type == 'r' ? to_repr(workspace, value) : to_text(workspace, value);
        if (layout.precision >= 0) text = characters(workspace, text, 0, size_t(layout.precision));
    }
    const auto missing =
        std::max<int64_t>(layout.width - int64_t(char_count(workspace, text.view())), 0);
    const char align = layout.align ? layout.align : is_numeric ? '>' : '<';
    const int64_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
    for (int64_t i = 0; i < left; ++i) out.add(layout.fill);
    out.add(text);
    for (int64_t i = left; i < missing; ++i) out.add(layout.fill);
}

Layout percent_layout(Cursor& cursor, Label label) {
    Layout layout{.label = label, .fill = text_of(" ", label)};
    layout.align = '>';
    for (;; cursor.take()) {
        if (cursor.peek() == '-')
            layout.align = '<';
        else if (cursor.peek() == '0')
            layout.zeros = true;
        else if (cursor.peek() == '+')
            layout.sign = true;
        else if (cursor.peek() == ' ')
            layout.space = true;
        else if (cursor.peek() != '#')
            break;
    }
    layout.width = cursor.number(kMaxWidth, 0);
    if (cursor.skip('.')) layout.precision = cursor.number(kMaxPrecision, 0);
    layout.type = cursor.take();
    if (std::string_view("srdixXofeEgG").find(layout.type) == std::string_view::npos) {
        throw Fault("unknown format %" + std::string(1, layout.type & 0x7F));
    }
    return layout;
}

Layout brace_layout(Cursor& cursor, const Value& value, Label label) {
    Layout layout{.label = label, .fill = text_of(" ", label)};
    const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^'; };
    Cursor ahead = cursor;
    const bool is_ascii = (ahead.peek() & 0x80) == 0;
    if (is_ascii && ahead.peek() != '}' && is_align((ahead.take(), ahead.peek()))) {
        layout.fill = cursor.take_part(1);
    }
    if (is_align(cursor.peek())) layout.align = cursor.take();
    layout.sign = cursor.skip('+');
    layout.zeros = cursor.skip('0');
    layout.width = cursor.number(kMaxWidth, 0);
    layout.grouped = cursor.skip(',');
    if (cursor.skip('.')) layout.precision = cursor.number(kMaxPrecision, 0);
    layout.type = value.is_whole() && !value.is(Kind::boolean) ? 'd' : 's';
    if (cursor.peek() != '}') layout.type = cursor.take();
    if (std::string_view("sdxXofeEgG").find(layout.type) == std::string_view::npos) {
        throw Fault("unknown format of {}");
    }
    return layout;
}

}  // namespace

Text percent_format(Workspace& workspace, const Text& pattern, const Value& arguments) {
    TextBuilder out(workspace);
    const bool is_tuple = arguments.is(Kind::list) && arguments.list->kind == ListKind::tuple;
    const std::span<const Value> all =
        is_tuple ? arguments.list->span() : std::span<const Value>(&arguments, 1);
    size_t used = 0;
    for (Cursor cursor(pattern); !cursor.at_end();) {
        out.add(cursor.until("%"));
        if (!cursor.skip('%')) break;
        if (cursor.skip('%')) {
            out.add("%", pattern.label);
            continue;
        }
        const Value* value = nullptr;
        if (cursor.skip('(')) {
            const Text name = cursor.until(")");
            cursor.take();
            if (arguments.is(Kind::dict)) value = find(workspace, *arguments.dict, name.view());
        }
        const Layout layout = percent_layout(cursor, pattern.label);
        if (!value) {
            if (used == all.size()) throw Fault("not enough arguments for the format");
            value = &all[used++];
        }
        add_laid_out(out, workspace, *value, layout);
    }
    if (used < all.size() && !arguments.is(Kind::dict)) {
        throw Fault("not all arguments were used by the format");
    }
    return out.text();
}

Text brace_format(Workspace& workspace, const Text& pattern, std::span<const Value> positional,
                  std::span<const Named> named) {
    TextBuilder out(workspace);
    size_t next = 0;
    for (Cursor cursor(pattern); !cursor.at_end();) {
        out.add(cursor.until("{}"));
        if (cursor.at_end()) break;
        const char brace = cursor.take();
        if (cursor.skip(brace)) {
            out.add(brace == '{' ? "{" : "}", pattern.label);
            continue;
        }
        if (brace == '}') throw Fault("single '}' in a format");
        const Text name = cursor.until(":}");
        workspace.touch(4 * named.size());
        Cursor digits(name);
        const int64_t index = name.size == 0 ? int64_t(next++) : digits.number(kMaxWidth, -1);
        const Value* value = nullptr;
        if (index >= 0 && index < int64_t(positional.size())) value = &positional[size_t(index)];
        for (const Named& argument : named) {
            if (argument.name == name.view()) value = &argument.value;
        }
        if (!value) throw Fault("format without a value for a field");
        Layout layout{.label = pattern.label};
        if (cursor.skip(':')) layout = brace_layout(cursor, *value, pattern.label);
        if (cursor.take() != '}') throw Fault("format with a field that does not end");
        add_laid_out(out, workspace, *value, layout);
    }
    return out.text();
}

}  // namespace aerie::jinja
