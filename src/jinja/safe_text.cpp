// Sums and methods of safe texts.
#include "jinja/safe_text.h"

#include <algorithm>
#include <array>

#include "jinja/operators.h"
#include "jinja/print.h"
#include "jinja/strings.h"

namespace aerie::jinja {
namespace {

// A method returns a text or a list of texts; all of them are safe.
Value marked_safe(Workspace& workspace, Value value) {
    if (value.is(Kind::text)) {
        value.safe = true;
        return value;
    }
    if (!value.is(Kind::list)) return value;
    std::vector<Value> items(value.list->span().begin(), value.list->span().end());
    for (Value& item : items) {
        if (item.is(Kind::text)) item.safe = true;
    }
    return workspace.list(items, value.list->kind, value.list->label);
}

Value escaped(Workspace& workspace, const Value& value) {
    return make_text(html_of(workspace, value));
}

// The items to join may be of any type.
void escape_items(Workspace& workspace, Value& iterable) {
    std::vector<Value> items;
    for (const Value& item : items_of(workspace, iterable)) {
        items.push_back(escaped(workspace, item));
    }
    iterable = workspace.list(items, ListKind::list, label_of(iterable));
}

}  // namespace

Text html_of(Workspace& workspace, const Value& value) {
    const Text text = to_text(workspace, value);
    return value.is(Kind::text) && value.safe ? text : escape_html(workspace, text);
}

Value safe_sum(Workspace& workspace, const Value& a, const Value& b) {
    TextBuilder text(workspace);
    text.add(html_of(workspace, a));
    text.add(html_of(workspace, b));
    Value sum = make_text(text.text());
    sum.safe = true;
    return sum;
}

Value call_of_safe(const Builtin& method, Evaluator& evaluator, const Value& self,
                   const Arguments& arguments) {
    constexpr std::array<std::string_view, 4> kFilling = {"replace", "ljust", "rjust", "center"};
    Workspace& workspace = evaluator.workspace();
    Arguments given = arguments;
    const bool fills = std::find(kFilling.begin(), kFilling.end(), method.name) != kFilling.end();
    if (fills && given.positional.size() > 1) {
        given.positional[1] = escaped(workspace, given.positional[1]);
    }
    for (Named& named : given.named) {
        const bool is_part = named.name == "new" || named.name == "fillchar";
        if (fills && is_part) named.value = escaped(workspace, named.value);
    }
    if (method.name == "join" && !given.positional.empty()) {
        escape_items(workspace, given.positional[0]);
    }
    const Value result = run(method, evaluator, self, given);
    const bool is_plain = method.name == "striptags" || method.name == "unescape";
    return is_plain ? result : marked_safe(workspace, result);
}

}  // namespace aerie::jinja
