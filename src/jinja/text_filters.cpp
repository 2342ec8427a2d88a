// Filters that return a text.
#include <algorithm>

#include "jinja/builtins.h"
#include "jinja/characters.h"
#include "jinja/operators.h"
#include "jinja/print.h"
#include "jinja/safe_text.h"
#include "jinja/strings.h"

namespace aerie::jinja {
namespace {

constexpr int64_t kMaxWidth = int64_t(kMaxTextBytes);

Value upper(const Call& call) {
    return make_text_like(call.self, change_case(call.workspace, call.own_text(), Case::upper));
}

Value lower(const Call& call) {
    return make_text_like(call.self, change_case(call.workspace, call.own_text(), Case::lower));
}

Value capitalize(const Call& call) {
    return make_text_like(call.self,
                          change_case(call.workspace, call.own_text(), Case::capitalized));
}

Value title(const Call& call) {
    return make_text(title_words(call.workspace, call.own_text()));
}

Value trim(const Call& call) {
    return make_text_like(
        call.self, strip(call.workspace, call.own_text(), call.optional_text(0), true, true));
}

Value as_string(const Call& call) {
    return make_text_like(call.self, call.own_text());
}

Value safe(const Call& call) {
    Value text = make_text(call.own_text());
    text.safe = true;
    return text;
}

Value replaced(const Call& call) {
    const Text by = to_text(call.workspace, call.needed(1));
    const Text old = to_text(call.workspace, call.needed(0));
    return make_text(replace(call.workspace, call.own_text(), old.view(), by, call.whole(2, -1)));
}

Value escape(const Call& call) {
    Value text = make_text(html_of(call.workspace, call.self));
    text.safe = true;
    return text;
}

// Escapes a safe text, too.
Value force_escape(const Call& call) {
    Value text = make_text(escape_html(call.workspace, call.own_text()));
    text.safe = true;
    return text;
}

Value strip_tags(const Call& call) {
    return make_text(without_tags(call.workspace, call.own_text()));
}

Value center(const Call& call) {
    const Text text = call.own_text();
    const int64_t width = std::clamp<int64_t>(call.whole(0, 80), 0, kMaxWidth + 1);
    const int64_t missing =
        std::max<int64_t>(width - int64_t(char_count(call.workspace, text.view())), 0);
    // As in Python, an odd place goes to the left if the width is odd, too.
    const int64_t left = missing / 2 + (missing & width & 1);
    return make_text_like(call.self, padded(call.workspace, text, left, missing - left, " "));
}

// None and numbers have no lines.
void check_text(const Call& call) {
    if (!call.self.is(Kind::text)) call.fail("of " + std::string(type_name(call.self)));
}

Value indent(const Call& call) {
    check_text(call);
    const Text text = call.own_text();
    Text margin;
    if (const Value* width = call.given(0); width && width->is(Kind::text)) {
        margin = width->text;
    } else {
        const int64_t spaces = std::clamp<int64_t>(call.whole(0, 4), 0, kMaxWidth + 1);
        margin = padded(call.workspace, text_of("", text.label), spaces, 0, " ");
    }
    const bool first = call.flag(1, false), blank = call.flag(2, false);
    std::vector<Text> lines = split_lines(call.workspace, text, false);
    const bool ends_line = text.size == 0 || is_line_break(last_char(text.view()));
    if (ends_line) lines.emplace_back();
    TextBuilder out(call.workspace);
    for (size_t i = 0; i < lines.size(); ++i) {
        if (i > 0) out.add("\n", text.label);
        if (i == 0 ? first : blank || lines[i].size > 0) out.add(margin);
        out.add(lines[i]);
    }
    return make_text_like(call.self, out.text());
}

Value truncate(const Call& call) {
    length_of(call.workspace, call.self);  // throws Fault for numbers, for example
    const Text text = call.own_text();
    const int64_t length = std::clamp<int64_t>(call.whole(0, 255), -1, kMaxWidth + 1);
    const int64_t leeway = call.whole(3, 5);
    const Text end = call.text(2, "...");
    const int64_t room = length - int64_t(char_count(call.workspace, end.view()));
    if (room < 0 || leeway < 0) call.fail("shorter than what marks the end");
    const auto size = int64_t(char_count(call.workspace, text.view()));
    if (size <= length || size - length <= leeway) return call.self;
    Text kept = characters(call.workspace, text, 0, size_t(room));
    if (!call.flag(1, false)) kept = split_from_right(call.workspace, kept, " ", 1)[0];
    const Value mark = call.given(2) ? *call.given(2) : make_text(end);
    return arithmetic(call.workspace, "+", make_text_like(call.self, kept), mark);
}

Value wordcount(const Call& call) {
    int64_t words = 0;
    bool inside = false;
    const Text text = call.own_text();
    all_of(call.workspace, text, [&](char32_t code) {
        if (is_word(code) && !inside) ++words;
        inside = is_word(code);
        return true;
    });
    return make_integer(words, text.label);
}

Value format(const Call& call) {
    const Arguments& given = call.arguments;
    const Value text = make_text_like(call.self, call.own_text());
    if (!given.named.empty() && !given.positional.empty()) call.fail("both kinds of arguments");
    if (given.named.empty()) {
        const Value all = call.workspace.list(given.positional, ListKind::tuple, kTemplate);
        return percent_format(call.workspace, text, all);
    }
    std::vector<Entry> entries;
    for (const Named& named : given.named) entries.push_back({make_text(named.name), named.value});
    const Value all = call.workspace.dict(entries, kTemplate);
    return percent_format(call.workspace, text, all);
}

Text indent_of_json(const Call& call) {
    if (const Value* given = call.given(1); given && given->is(Kind::text)) return given->text;
    const int64_t spaces = std::clamp<int64_t>(call.whole(1, 0), 0, kMaxWidth + 1);
    return padded(call.workspace, Text(), spaces, 0, " ");
}

// The arguments are those of transformers' filter, which does not escape for HTML.
Value tojson(const Call& call) {
    JsonStyle style;
    style.ascii = call.flag(0, false);
    style.indented = call.given(1) && !call.given(1)->is(Kind::none);
    style.indent = indent_of_json(call);
    style.comma = text_of(style.indented ? "," : ", ");
    style.colon = text_of(": ");
    if (const Value* given = call.given(2); given && !given->is(Kind::none)) {
        const std::span<const Value> both = items_of(call.workspace, *given);
        if (both.size() != 2 || !both[0].is(Kind::text) || !both[1].is(Kind::text)) {
            call.fail("separators are two strings");
        }
        style.comma = both[0].text;
        style.colon = both[1].text;
    }
    style.sorted = call.flag(3, false);
    return make_text(to_json(call.workspace, call.self, style));
}

}  // namespace

const Builtins& text_filters() {
    static const Builtins all = {
        {"upper", upper},
        {"lower", lower},
        {"capitalize", capitalize},
        {"title", title},
        {"trim", trim, {"chars"}},
        {"string", as_string},
        {"safe", safe},
        {"striptags", strip_tags},
        {"replace", replaced, {"old", "new", "count"}},
        {"escape", escape},
        {"e", escape},
        {"forceescape", force_escape},
        {"center", center, {"width"}},
        {"indent", indent, {"width", "first", "blank"}},
        {"truncate", truncate, {"length", "killwords", "end", "leeway"}},
        {"wordcount", wordcount},
        {"format", format, {}, true},
        {"tojson", tojson, {"ensure_ascii", "indent", "separators", "sort_keys"}},
    };
    return all;
}

}  // namespace aerie::jinja
