// Filters that look inside the items: map, select, reject, and access to members.
#include <algorithm>
#include <charconv>

#include "jinja/operators.h"
#include "jinja/sorting.h"
#include "jinja/strings.h"

namespace aerie::jinja {
namespace {

Arguments without_first(const Arguments& all, size_t count) {
    const size_t first = std::min(count, all.positional.size());
    return {{all.positional.begin() + std::ptrdiff_t(first), all.positional.end()}, all.named};
}

const Value& positional(const Call& call, size_t at) {
    if (at >= call.arguments.positional.size()) call.fail("argument missing");
    return call.arguments.positional[at];
}

std::string_view name_at(const Call& call, size_t at) {
    const Value& name = positional(call, at);
    if (!name.is(Kind::text)) call.fail("a name is needed");
    return name.text.view();
}

const Value* named(const Call& call, std::string_view name) {
    for (const Named& argument : call.arguments.named) {
        if (argument.name == name) return &argument.value;
    }
    return nullptr;
}

// In jinja2 the generator for a false value ends before it looks at its arguments: nothing is
// iterated, whether the value is iterable or not.
Value nothing(const Call& call) {
    return call.workspace.list({}, ListKind::generator, label_of(call.self));
}

Value map(const Call& call) {
    if (!is_true(call.self)) return nothing(call);
    const Value* attribute = named(call, "attribute");
    const Value* otherwise = named(call, "default");
    const bool by_filter = !attribute || !call.arguments.positional.empty();
    std::vector<Value> results;
    const Arguments rest = without_first(call.arguments, 1);
    call.workspace.touch(rest.positional.size() * sizeof(Value));
    for (const Value& item : items_of(call.workspace, call.self)) {
        call.workspace.step();
        if (by_filter) {
            results.push_back(call.evaluator.apply_filter(name_at(call, 0), item, rest));
            continue;
        }
        results.push_back(member_at(call, item, *attribute, otherwise));
    }
    return call.workspace.list(results, ListKind::generator, label_of(call.self));
}

// The items for which the test (or being true) is `wanted`. With `by_attribute`, a member of each
// item is tested.
Value chosen(const Call& call, bool wanted, bool by_attribute) {
    if (!is_true(call.self)) return nothing(call);
    const size_t at = by_attribute ? 1 : 0;  // index of the test's name
    const bool by_test = call.arguments.positional.size() > at;
    const Arguments rest = by_test ? without_first(call.arguments, at + 1) : Arguments();
    call.workspace.touch(rest.positional.size() * sizeof(Value));
    std::vector<Value> kept;
    for (const Value& item : items_of(call.workspace, call.self)) {
        call.workspace.step();
        const Value value = by_attribute ? member_at(call, item, positional(call, 0)) : item;
        const bool holds =
            by_test ? call.evaluator.apply_test(name_at(call, at), value, rest) : is_true(value);
        if (holds == wanted) kept.push_back(item);
    }
    return call.workspace.list(kept, ListKind::generator, label_of(call.self));
}

Value select(const Call& call) {
    return chosen(call, true, false);
}
Value reject(const Call& call) {
    return chosen(call, false, false);
}
Value select_by_attribute(const Call& call) {
    return chosen(call, true, true);
}
Value reject_by_attribute(const Call& call) {
    return chosen(call, false, true);
}

Value attribute(const Call& call) {
    return call.evaluator.attribute(call.self, call.needed_text(0).view());
}

Value otherwise(const Call& call) {
    const bool is_missing =
        call.self.is(Kind::undefined) || (call.flag(1, false) && !is_true(call.self));
    if (!is_missing) return call.self;
    return call.given(0) ? *call.given(0) : make_text("");
}

}  // namespace

Value member_at(const Call& call, const Value& value, const Value& path, const Value* otherwise) {
    const auto inside = [&](const Value& whole, const Value& key) {
        const Value member = call.evaluator.item(whole, key);
        return member.is(Kind::undefined) && otherwise ? *otherwise : member;
    };
    if (path.is_whole()) return inside(value, path);
    if (!path.is(Kind::text)) call.fail("an attribute is a name or a number");
    Value member = value;
    for (const Text& part : split(call.workspace, path.text, ".", -1)) {
        int64_t index = 0;
        const char* end = part.data + part.size;
        const auto [stop, error] = std::from_chars(part.data, end, index);
        const bool is_number = error == std::errc() && stop == end && part.data[0] != '-';
        member = inside(member, is_number ? make_integer(index) : make_text(part));
    }
    return member;
}

std::vector<Keyed> keyed(const Call& call, std::span<const Value> items, bool case_sensitive,
                         const Value* attribute, const Value* otherwise) {
    std::vector<Keyed> all;
    for (const Value& item : items) {
        call.workspace.step();
        const bool by_attribute = attribute && !attribute->is(Kind::none);
        Value key = by_attribute ? member_at(call, item, *attribute, otherwise) : item;
        const Value shown = key;
        if (!case_sensitive && key.is(Kind::text)) {
            key = make_text(change_case(call.workspace, key.text, Case::lower));
        }
        all.push_back({key, item, shown});
    }
    return all;
}

void sort_by_key(Workspace& workspace, std::vector<Keyed>& items, bool reverse) {
    std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
        const int order = compare(workspace, a.key, b.key);
        return reverse ? order > 0 : order < 0;
    });
}

const Builtins& choosing_filters() {
    static const Builtins all = {
        {"map", map, {}, true},
        {"select", select, {}, true},
        {"reject", reject, {}, true},
        {"selectattr", select_by_attribute, {}, true},
        {"rejectattr", reject_by_attribute, {}, true},
        {"attr", attribute, {"name"}},
        {"default", otherwise, {"default_value", "boolean"}},
        {"d", otherwise, {"default_value", "boolean"}},
    };
    return all;
}

}  // namespace aerie::jinja
