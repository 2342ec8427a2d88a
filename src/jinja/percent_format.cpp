// '%s' % x.
#include <string>

#include "jinja/characters.h"
#include "jinja/format.h"
#include "jinja/layout.h"
#include "jinja/operators.h"
#include "jinja/print.h"
#include "jinja/strings.h"

namespace aerie::jinja {
namespace {

class PercentFormat {
  public:
    PercentFormat(Workspace& workspace, const Value& pattern, const Value& arguments);
    Value result();

  private:
    const Value& next();
    const Value& named(std::string_view name);
    int64_t number(int64_t limit, int64_t otherwise);
    Layout layout();
    void add(const Value& value, const Layout& layout);
    Text text_of_value(const Value& value, char type);

    Workspace& workspace_;
    const Value& pattern_;
    const Value& arguments_;
    const bool has_items_;  // a dict or a list, which may stay unused
    std::span<const Value> all_;
    size_t used_ = 0;
    Cursor cursor_;
    TextBuilder out_;
};

bool is_tuple(const Value& value) {
    return value.is(Kind::list) && value.list->kind == ListKind::tuple;
}

PercentFormat::PercentFormat(Workspace& workspace, const Value& pattern, const Value& arguments)
    : workspace_(workspace),
      pattern_(pattern),
      arguments_(arguments),
      has_items_(arguments.is(Kind::dict) || (arguments.is(Kind::list) && !is_tuple(arguments))),
      all_(is_tuple(arguments) ? arguments.list->span() : std::span<const Value>(&arguments, 1)),
      cursor_(pattern.text),
      out_(workspace) {}

const Value& PercentFormat::next() {
    if (used_ == all_.size()) throw Fault("not enough arguments for the format");
    return all_[used_++];
}

const Value& PercentFormat::named(std::string_view name) {
    if (!arguments_.is(Kind::dict)) throw Fault("a format with names needs a dict");
    const Value* value = find(workspace_, *arguments_.dict, name);
    if (!value) throw Fault("format without a value for a field");
    return *value;
}

// A number in digits, or a star for the next argument.
int64_t PercentFormat::number(int64_t limit, int64_t otherwise) {
    if (!cursor_.skip('*')) return cursor_.number(limit, otherwise);
    const Value& value = next();
    if (!value.is_whole()) throw Fault("* in a format needs a whole number");
    if (value.whole() > limit || value.whole() < -limit)
        throw Fault("format wider than " + std::to_string(limit));
    return value.whole();
}

Layout PercentFormat::layout() {
    Layout layout{.label = pattern_.text.label, .align = '>'};
    bool left = false;
    for (;; cursor_.take()) {
        const char flag = cursor_.peek();
        if (flag == '-')
            left = true;
        else if (flag == '0')
            layout.zeros = true;
        else if (flag == '+' || (flag == ' ' && layout.sign != '+'))
            layout.sign = flag;
        else if (flag == '#')
            layout.prefixed = true;
        else if (flag != ' ')
            break;
    }
    layout.width = number(kMaxFormatWidth, 0);
    if (layout.width < 0) {
        left = true;
        layout.width = -layout.width;
    }
    if (cursor_.skip('.')) layout.precision = std::max<int64_t>(number(kMaxFormatPrecision, 0), 0);
    for (const char size : {'h', 'l', 'L'}) {
        if (cursor_.skip(size)) break;
    }
    layout.type = cursor_.take();
    if (std::string_view("acdeEfFgGiorsuxX%").find(layout.type) == std::string_view::npos) {
        throw Fault("unknown format %" + std::string(1, layout.type & 0x7F));
    }
    if (left) {
        layout.align = '<';
    } else if (layout.zeros && std::string_view("acrs").find(layout.type) == std::string::npos) {
        layout.align = '\0';
    }
    return layout;
}

Text PercentFormat::text_of_value(const Value& value, char type) {
    if (type == 'c') {
        const bool is_char = value.is(Kind::text) && char_count(workspace_, value.text.view()) == 1;
        return is_char ? value.text : character_of(workspace_, value);
    }
    const bool is_html = value.is(Kind::text) && value.safe && type == 's';
    const Text text = type == 's'   ? to_text(workspace_, value)
                      : type == 'r' ? to_repr(workspace_, value)
                                    : ascii_repr(workspace_, value);
    return pattern_.safe && !is_html ? escape_html(workspace_, text) : text;
}

void PercentFormat::add(const Value& value, const Layout& layout) {
    if (std::string_view("acrs").find(layout.type) != std::string_view::npos) {
        return add_string(out_, workspace_, text_of_value(value, layout.type), layout);
    }
    if (value.is(Kind::real) && std::string_view("oxX").find(layout.type) != std::string::npos) {
        throw Fault("a whole number is needed to format, not float");
    }
    add_number(out_, workspace_, value, layout);
}

Value PercentFormat::result() {
    const Text& pattern = pattern_.text;
    while (!cursor_.at_end()) {
        out_.add(cursor_.until("%"));
        if (!cursor_.skip('%')) break;
        const Value* value = nullptr;
        if (cursor_.skip('(')) {
            const Text name = cursor_.until(")");
            cursor_.take();
            value = &named(name.view());
        }
        const bool is_plain = cursor_.peek() == '%';
        const Layout how = layout();
        if (how.type == '%' && !is_plain) throw Fault("unknown format %");
        if (how.type == '%') {
            out_.add("%", pattern.label);
            continue;
        }
        add(value ? *value : next(), how);
    }
    if (used_ < all_.size() && !has_items_) {
        throw Fault("not all arguments were used by the format");
    }
    return make_text_like(pattern_, out_.text());
}

}  // namespace

Value percent_format(Workspace& workspace, const Value& pattern, const Value& arguments) {
    return PercentFormat(workspace, pattern, arguments).result();
}

}  // namespace aerie::jinja
