// Python's string methods.
#include <algorithm>

#include "jinja/builtins.h"
#include "jinja/characters.h"
#include "jinja/format.h"
#include "jinja/operators.h"
#include "jinja/strings.h"

namespace aerie::jinja {
namespace {

constexpr int64_t kMaxPaddedWidth = int64_t(kMaxTextBytes) + 1;

Value list_of(const Call& call, const std::vector<Text>& parts, ListKind kind = ListKind::list) {
    std::vector<Value> items;
    for (const Text& part : parts) items.push_back(make_text(part));
    return call.workspace.list(items, kind, call.self.text.label);
}

template <Case kCase>
Value cased(const Call& call) {
    return make_text(change_case(call.workspace, call.self.text, kCase));
}

template <bool kLeft, bool kRight>
Value stripped(const Call& call) {
    return make_text(strip(call.workspace, call.self.text, call.optional_text(0), kLeft, kRight));
}

Value split_left(const Call& call) {
    return list_of(call,
                   split(call.workspace, call.self.text, call.optional_text(0), call.whole(1, -1)));
}

Value split_right(const Call& call) {
    return list_of(call, split_from_right(call.workspace, call.self.text, call.optional_text(0),
                                          call.whole(1, -1)));
}

Value lines(const Call& call) {
    return list_of(call, split_lines(call.workspace, call.self.text, call.flag(0, false)));
}

Value partition(const Call& call) {
    const Text text = call.self.text, separator = call.needed_text(0);
    std::vector<Text> parts = split(call.workspace, text, separator.view(), 1);
    if (parts.size() == 1) {
        parts.resize(3);
    } else {
        parts.insert(parts.begin() + 1, text.part(parts[0].size, separator.size));
    }
    return list_of(call, parts, ListKind::tuple);
}

Value partition_right(const Call& call) {
    const Text text = call.self.text, separator = call.needed_text(0);
    std::vector<Text> parts = split_from_right(call.workspace, text, separator.view(), 1);
    if (parts.size() == 1) {
        parts.insert(parts.begin(), 2, Text());
    } else {
        parts.insert(parts.begin() + 1, text.part(parts[0].size, separator.size));
    }
    return list_of(call, parts, ListKind::tuple);
}

Value replaced(const Call& call) {
    return make_text(replace(call.workspace, call.self.text, call.needed_text(0).view(),
                             call.needed_text(1), call.whole(2, -1)));
}

Value joined_items(const Call& call) {
    std::vector<Text> parts;
    for (const Value& item : items_of(call.workspace, call.needed(0))) {
        call.workspace.touch(sizeof(Value));
        if (!item.is(Kind::text)) call.fail("of " + std::string(type_name(item)));
        parts.push_back(item.text);
    }
    return make_text(joined(call.workspace, parts, call.self.text));
}

// The part of `self` between the bounds in arguments `at` and `at + 1`, as in slices.
Text window(const Call& call, size_t at) {
    if (!call.given(at) && !call.given(at + 1)) return call.self.text;
    return slice(call.workspace, call.self.text, call.optional_whole(at),
                 call.optional_whole(at + 1), 1);
}

bool matches(const Call& call, const Text& text, bool at_end) {
    const Value& wanted = call.needed(0);
    const bool is_tuple = wanted.is(Kind::list) && wanted.list->kind == ListKind::tuple;
    const std::span<const Value> all =
        is_tuple ? wanted.list->span() : std::span<const Value>(&wanted, 1);
    return std::any_of(all.begin(), all.end(), [&](const Value& one) {
        if (!one.is(Kind::text)) call.fail("a string is needed");
        call.workspace.touch(one.text.size);
        return at_end ? text.view().ends_with(one.text.view())
                      : text.view().starts_with(one.text.view());
    });
}

template <bool kAtEnd>
Value begins_or_ends(const Call& call) {
    return make_boolean(matches(call, window(call, 1), kAtEnd), call.self.text.label);
}

template <bool kAtEnd>
Value without(const Call& call) {
    const Text text = call.self.text, part = call.needed_text(0);
    if (!matches(call, text, kAtEnd)) return call.self;
    return make_text(text.part(kAtEnd ? 0 : part.size, text.size - part.size));
}

// The number of characters before the place; -1 if the text is not found.
int64_t place_of(const Call& call, bool last) {
    const Text text = window(call, 1);
    const std::string_view part = call.needed_text(0).view();
    size_t at = std::string_view::npos;
    if (last) {
        const std::vector<Text> both = part.empty()
                                           ? std::vector<Text>{text, Text()}
                                           : split_from_right(call.workspace, text, part, 1);
        if (both.size() == 2) at = both[0].size;
    } else {
        at = find_text(call.workspace, text.view(), part);
    }
    if (at == std::string_view::npos) return -1;
    const size_t before = size_t(text.data - call.self.text.data);
    return int64_t(char_count(call.workspace, call.self.text.view().substr(0, before + at)));
}

template <bool kLast, bool kNeeded>
Value found(const Call& call) {
    const int64_t place = place_of(call, kLast);
    if (kNeeded && place < 0) call.fail("substring not found");
    return make_integer(place, call.self.text.label);
}

Value count(const Call& call) {
    return make_integer(count_of(call.workspace, window(call, 1), call.needed_text(0).view()),
                        call.self.text.label);
}

// `left`: how many tenths of the padding are before the text.
Value filled(const Call& call, int left) {
    const Text text = call.self.text;
    call.needed(0);
    const Text fill = call.text(1, " ");
    if (char_count(call.workspace, fill.view()) != 1) call.fail("the fill is one character");
    const int64_t width = std::clamp<int64_t>(call.whole(0, 0), 0, kMaxPaddedWidth);
    const int64_t missing =
        std::max<int64_t>(width - int64_t(char_count(call.workspace, text.view())), 0);
    const int64_t before = left == 5 ? missing / 2 + (missing & width & 1) : missing * left / 10;
    return make_text(padded(call.workspace, text, before, missing - before, fill.view()));
}

Value centered(const Call& call) {
    return filled(call, 5);
}
Value to_the_left(const Call& call) {
    return filled(call, 0);
}
Value to_the_right(const Call& call) {
    return filled(call, 10);
}

Value with_zeros(const Call& call) {
    const Text text = call.self.text;
    call.needed(0);
    const int64_t width = std::clamp<int64_t>(call.whole(0, 0), 0, kMaxPaddedWidth);
    const int64_t missing =
        std::max<int64_t>(width - int64_t(char_count(call.workspace, text.view())), 0);
    const bool has_sign = text.view().starts_with('-') || text.view().starts_with('+');
    const Text zeros = padded(call.workspace, text_of("", text.label), missing, 0, "0");
    const size_t sign = has_sign ? 1 : 0;
    return make_text(joined(
        call.workspace, {text.part(0, sign), zeros, text.part(sign, text.size - sign)}, Text()));
}

Value formatted(const Call& call) {
    return brace_format(call.evaluator, call.self, call.arguments.positional, call.arguments.named);
}

Value formatted_by_dict(const Call& call) {
    const Value& dict = call.needed(0);
    if (!dict.is(Kind::dict)) call.fail("of " + std::string(type_name(dict)));
    std::vector<Named> named;
    for (const Entry& entry : dict.dict->span()) {
        if (entry.key.is(Kind::text)) named.push_back({entry.key.text.view(), entry.value});
    }
    call.workspace.touch(named.size() * sizeof(Named));
    return brace_format(call.evaluator, call.self, {}, named);
}

// A tab fills its column up to the next multiple of the size.
Value without_tabs(const Call& call) {
    const Text text = call.self.text;
    const int64_t size = std::clamp<int64_t>(call.whole(0, 8), 0, kMaxPaddedWidth);
    TextBuilder out(call.workspace);
    int64_t column = 0;
    for (size_t at = 0; at < text.size;) {
        const size_t bytes = char_size(text.data[at]);
        if (text.data[at] == '\t') {
            const int64_t missing = size > 0 ? size - column % size : 0;
            for (int64_t i = 0; i < missing; ++i) out.add(" ", text.label_at(at));
            column += missing;
        } else {
            out.add(text.part(at, bytes));
            const bool begins_line = text.data[at] == '\n' || text.data[at] == '\r';
            column = begins_line ? 0 : column + 1;
        }
        at += bytes;
    }
    return make_text(out.text());
}

}  // namespace

const Builtins& text_methods() {
    static const Builtins all = {
        {"upper", cased<Case::upper>},
        {"lower", cased<Case::lower>},
        {"casefold", cased<Case::folded>},
        {"title", cased<Case::title>},
        {"capitalize", cased<Case::capitalized>},
        {"swapcase", cased<Case::swapped>},
        {"strip", stripped<true, true>, {"chars"}},
        {"lstrip", stripped<true, false>, {"chars"}},
        {"rstrip", stripped<false, true>, {"chars"}},
        {"split", split_left, {"sep", "maxsplit"}},
        {"rsplit", split_right, {"sep", "maxsplit"}},
        {"splitlines", lines, {"keepends"}},
        {"partition", partition, {"sep"}},
        {"rpartition", partition_right, {"sep"}},
        {"replace", replaced, {"old", "new", "count"}},
        {"join", joined_items, {"iterable"}},
        {"startswith", begins_or_ends<false>, {"prefix", "start", "end"}},
        {"endswith", begins_or_ends<true>, {"suffix", "start", "end"}},
        {"removeprefix", without<false>, {"prefix"}},
        {"removesuffix", without<true>, {"suffix"}},
        {"find", found<false, false>, {"sub", "start", "end"}},
        {"rfind", found<true, false>, {"sub", "start", "end"}},
        {"index", found<false, true>, {"sub", "start", "end"}},
        {"rindex", found<true, true>, {"sub", "start", "end"}},
        {"count", count, {"sub", "start", "end"}},
        {"center", centered, {"width", "fillchar"}},
        {"ljust", to_the_left, {"width", "fillchar"}},
        {"rjust", to_the_right, {"width", "fillchar"}},
        {"zfill", with_zeros, {"width"}},
        {"format", formatted, {}, true},
        {"format_map", formatted_by_dict, {"mapping"}},
        {"expandtabs", without_tabs, {"tabsize"}},
    };
    return all;
}

}  // namespace aerie::jinja
