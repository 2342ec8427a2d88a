// '{}'.format(x).
#include <charconv>
#include <string>

#include "jinja/builtins.h"
#include "jinja/characters.h"
#include "jinja/layout.h"
#include "jinja/print.h"
#include "jinja/strings.h"

namespace aerie::jinja {
namespace {

constexpr size_t kMaxFormatDepth = 2;  // a field, and fields in its layout

class BraceFormat {
  public:
    BraceFormat(Evaluator& evaluator, std::span<const Value> positional,
                std::span<const Named> named, bool escapes)
        : evaluator_(evaluator),
          workspace_(evaluator.workspace()),
          positional_(positional),
          named_(named),
          escapes_(escapes) {}

    Text text(const Text& pattern, size_t depth);

  private:
    void field(TextBuilder& out, const Text& inside, size_t depth);
    Value argument(std::string_view name);
    Value value(const Text& path);
    void add(TextBuilder& out, const Value& value, const Text& layout);

    Evaluator& evaluator_;
    Workspace& workspace_;
    const std::span<const Value> positional_;
    const std::span<const Named> named_;
    const bool escapes_;
    size_t next_ = 0;
    bool counts_ = false, numbers_ = false;  // fields without numbers, with numbers
};

bool is_align(char c) {
    return c == '<' || c == '>' || c == '^' || c == '=';
}

// [[fill]align][sign][#][0][width][, or _][.precision][type]
Layout layout_of(const Text& pattern) {
    Layout layout{.label = pattern.label};
    Cursor cursor(pattern);
    const size_t first = cursor.at_end() ? 0 : char_size(cursor.peek());
    if (first < pattern.size && is_align(pattern.data[first])) {
        layout.fill = cursor.take_part(first);
        layout.align = cursor.take();
    } else if (is_align(cursor.peek())) {
        layout.align = cursor.take();
    }
    for (const char sign : {'+', '-', ' '}) {
        if (cursor.skip(sign)) layout.sign = sign;
    }
    layout.prefixed = cursor.skip('#');
    layout.zeros = cursor.skip('0');
    if (layout.zeros && layout.fill.size == 0) layout.fill = text_of("0", pattern.label);
    layout.width = cursor.number(kMaxFormatWidth, 0);
    for (const char group : {',', '_'}) {
        if (cursor.skip(group)) layout.group = group;
    }
    if (cursor.skip('.')) {
        layout.precision = cursor.number(kMaxFormatPrecision, -1);
        if (layout.precision < 0) throw Fault("format without its precision");
    }
    if (!cursor.at_end()) layout.type = cursor.take();
    if (!cursor.at_end()) throw Fault("unknown format of {}");
    return layout;
}

// The place of the brace that ends the field that begins at `at`.
size_t end_of_field(std::string_view pattern, size_t at) {
    for (size_t open = 1; at < pattern.size(); ++at) {
        if (pattern[at] == '{') ++open;
        if (pattern[at] == '}' && --open == 0) return at;
    }
    throw Fault("format with a field that does not end");
}

Text BraceFormat::text(const Text& pattern, size_t depth) {
    if (depth > kMaxFormatDepth) throw Fault("format with fields inside each other");
    TextBuilder out(workspace_);
    const std::string_view bytes = pattern.view();
    for (size_t at = 0; at < bytes.size();) {
        const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
        out.add(pattern.part(at, brace - at));
        if (brace == bytes.size()) break;
        at = brace + 1;
        if (at < bytes.size() && bytes[at] == bytes[brace]) {
            out.add(pattern.part(at++, 1));
            continue;
        }
        if (bytes[brace] == '}') throw Fault("single '}' in a format");
        const size_t end = end_of_field(bytes, at);
        field(out, pattern.part(at, end - at), depth);
        at = end + 1;
    }
    return out.text();
}

// path[!conversion][:layout]
void BraceFormat::field(TextBuilder& out, const Text& inside, size_t depth) {
    Cursor cursor(inside);
    const Text path = cursor.until("!:");
    Value found = value(path);
    if (cursor.skip('!')) {
        const char conversion = cursor.take();
        if (conversion != 'r' && conversion != 's' && conversion != 'a')
            throw Fault("unknown conversion in a format");
        found = make_text(conversion == 'r'   ? to_repr(workspace_, found)
                          : conversion == 's' ? to_text(workspace_, found)
                                              : ascii_repr(workspace_, found));
    }
    if (!cursor.at_end() && !cursor.skip(':')) throw Fault("unknown format of {}");
    const Text layout = cursor.rest();
    add(out, found, layout.size > 0 ? text(layout, depth + 1) : layout);
}

Value BraceFormat::argument(std::string_view name) {
    size_t index = 0;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data(), end, index);
    const bool is_number = !name.empty() && stop == end && error == std::errc();
    counts_ = counts_ || name.empty();
    numbers_ = numbers_ || is_number;
    if (counts_ && numbers_) throw Fault("format with fields with and without numbers");
    if (name.empty()) index = next_++;
    if ((name.empty() || is_number) && index < positional_.size()) return positional_[index];
    workspace_.touch(kBytesPerName * named_.size());
    for (const Named& argument : named_) {
        if (!name.empty() && argument.name == name) return argument.value;
    }
    throw Fault("format without a value for a field");
}

// name.attribute[key]
Value BraceFormat::value(const Text& path) {
    Cursor cursor(path);
    Value found = argument(cursor.until(".[").view());
    while (!cursor.at_end()) {
        workspace_.step();
        if (cursor.take() == '.') {
            found = evaluator_.attribute(found, cursor.until(".[").view());
            continue;
        }
        const Text key = cursor.until("]");
        if (cursor.take() != ']') throw Fault("incomplete format");
        Cursor digits(key);
        const int64_t index = digits.number(kMaxItems, -1);
        const bool is_index = index >= 0 && digits.at_end();
        found = evaluator_.item(found, is_index ? make_integer(index) : make_text(key));
    }
    return found;
}

void BraceFormat::add(TextBuilder& out, const Value& value, const Text& pattern) {
    if (escapes_ && value.is(Kind::text) && value.safe) {
        if (pattern.size > 0) throw Fault("layout of a safe text in a format");
        return out.add(value.text);
    }
    TextBuilder field(workspace_);
    if (pattern.size == 0) {
        field.add(to_text(workspace_, value));
    } else if (const Layout layout = layout_of(pattern); value.is(Kind::text)) {
        if ((layout.type != '\0' && layout.type != 's') || layout.align == '=' || layout.group)
            throw Fault("unknown format of a string");
        add_string(field, workspace_, value.text, layout);
    } else if (value.is_whole() && layout.type == 'c') {
        add_string(field, workspace_, character_of(workspace_, value), layout);
    } else {
        if (!value.is_number()) throw Fault("layout of " + std::string(type_name(value)));
        const std::string_view known = value.is(Kind::real) ? "eEfFgGn%" : "bdoxXneEfFgG%";
        if (layout.type != '\0' && known.find(layout.type) == known.npos)
            throw Fault("unknown format of a number");
        const bool is_real = value.is(Kind::real) || std::string_view("eEfFgG%").find(
                                                         layout.type) != std::string_view::npos;
        if (layout.precision >= 0 && !is_real) throw Fault("precision of a whole number");
        add_number(field, workspace_, value, layout);
    }
    out.add(escapes_ ? escape_html(workspace_, field.text()) : field.text());
}

}  // namespace

Value brace_format(Evaluator& evaluator, const Value& pattern, std::span<const Value> positional,
                   std::span<const Named> named) {
    BraceFormat format(evaluator, positional, named, pattern.safe);
    return make_text_like(pattern, format.text(pattern.text, 1));
}

}  // namespace aerie::jinja
