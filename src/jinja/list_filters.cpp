// Filters on lists and dicts.
#include <algorithm>

#include "jinja/builtins.h"
#include "jinja/operators.h"
#include "jinja/print.h"
#include "jinja/sorting.h"
#include "jinja/strings.h"

namespace aerie::jinja {
namespace {

Value list_of(const Call& call, const std::vector<Value>& items, ListKind kind = ListKind::list) {
    return call.workspace.list(items, kind, label_of(call.self));
}

Value pair_of(const Call& call, const Value& first, const Value& second) {
    return call.workspace.list({first, second}, ListKind::tuple, label_of(call.self));
}

Value as_list(const Call& call) {
    const std::span<const Value> items = items_of(call.workspace, call.self);
    return list_of(call, {items.begin(), items.end()});
}

Value join(const Call& call) {
    const Value* attribute = call.given(1);
    std::vector<Text> parts;
    for (const Value& item : items_of(call.workspace, call.self)) {
        call.workspace.step();
        const bool by_attribute = attribute && !attribute->is(Kind::none);
        const Value part = by_attribute ? member_at(call, item, *attribute) : item;
        parts.push_back(to_text(call.workspace, part));
    }
    const Text between = call.given(0) ? to_text(call.workspace, *call.given(0)) : Text();
    return make_text(joined(call.workspace, parts, between));
}

Value first(const Call& call) {
    if (call.self.is(Kind::list) && call.self.list->kind == ListKind::generator) {
        const List& list = *call.self.list;
        if (list.generated == list.size) return make_undefined("first item of nothing");
        return list.items[list.generated++];
    }
    const std::span<const Value> items = items_of(call.workspace, call.self);
    return items.empty() ? make_undefined("first item of nothing") : items.front();
}

Value last(const Call& call) {
    if (call.self.is(Kind::list) && call.self.list->kind == ListKind::generator) {
        call.fail("of a generator");
    }
    const std::span<const Value> items = items_of(call.workspace, call.self);
    if (items.empty()) return make_undefined("last item of nothing");
    return call.self.is(Kind::text) ? make_text_like(call.self, items.back().text) : items.back();
}

Value length(const Call& call) {
    return make_integer(length_of(call.workspace, call.self), label_of(call.self));
}

Value reverse(const Call& call) {
    if (call.self.is(Kind::text)) {
        return make_text_like(
            call.self, slice(call.workspace, call.self.text, std::nullopt, std::nullopt, -1));
    }
    const std::span<const Value> items = items_of(call.workspace, call.self);
    return list_of(call, {items.rbegin(), items.rend()}, ListKind::generator);
}

Value batch(const Call& call) {
    const int64_t size = call.whole(0, 0);
    if (size < 1) call.fail("of less than one item");
    std::vector<Value> all, row;
    for (const Value& item : items_of(call.workspace, call.self)) {
        row.push_back(item);
        if (int64_t(row.size()) < size) continue;
        all.push_back(list_of(call, row));
        row.clear();
    }
    if (row.empty()) return list_of(call, all, ListKind::generator);
    while (call.given(1) && !call.given(1)->is(Kind::none) && int64_t(row.size()) < size) {
        call.workspace.add_item(row.size());
        row.push_back(*call.given(1));
    }
    all.push_back(list_of(call, row));
    return list_of(call, all, ListKind::generator);
}

// `count` parts of about the same size, the longer ones first.
Value slices(const Call& call) {
    call.needed(0);
    const int64_t count = call.whole(0, 0);
    if (count == 0) call.fail("of 0 parts");
    const std::span<const Value> items = items_of(call.workspace, call.self);
    std::vector<Value> all;
    const bool fills = call.given(1) && !call.given(1)->is(Kind::none);
    for (int64_t i = 0, begin = 0; i < count; ++i) {
        call.workspace.add_item(all.size());
        const int64_t size = int64_t(items.size()) / count;
        const bool is_longer = i < int64_t(items.size()) % count;
        const int64_t end = begin + size + (is_longer ? 1 : 0);
        std::vector<Value> part(items.begin() + begin, items.begin() + end);
        if (fills && !is_longer) part.push_back(*call.given(1));
        all.push_back(list_of(call, part));
        begin = end;
    }
    return list_of(call, all, ListKind::generator);
}

Value sum(const Call& call) {
    const Value* attribute = call.given(0);
    Value total = call.given(1) ? *call.given(1) : make_integer(0);
    if (total.is(Kind::text)) call.fail("of strings: join them");
    for (const Value& item : items_of(call.workspace, call.self)) {
        call.workspace.step();
        const bool by_attribute = attribute && !attribute->is(Kind::none);
        const Value part = by_attribute ? member_at(call, item, *attribute) : item;
        total = arithmetic(call.workspace, "+", total, part);
    }
    return total;
}

Value extreme(const Call& call, int sign) {
    const std::vector<Keyed> all =
        keyed(call, items_of(call.workspace, call.self), call.flag(0, false), call.given(1));
    if (all.empty()) return make_undefined("item of nothing");
    const Keyed* best = &all[0];
    for (const Keyed& one : all) {
        if (compare(call.workspace, one.key, best->key) * sign > 0) best = &one;
    }
    return best->value;
}

Value maximum(const Call& call) {
    return extreme(call, 1);
}

Value minimum(const Call& call) {
    return extreme(call, -1);
}

Value sort(const Call& call) {
    std::vector<Keyed> all =
        keyed(call, items_of(call.workspace, call.self), call.flag(1, false), call.given(2));
    sort_by_key(call.workspace, all, call.flag(0, false));
    std::vector<Value> items;
    for (const Keyed& one : all) items.push_back(one.value);
    return list_of(call, items);
}

Value unique(const Call& call) {
    std::vector<Value> keys, items;
    for (const Keyed& one :
         keyed(call, items_of(call.workspace, call.self), call.flag(0, false), call.given(1))) {
        const bool known = std::any_of(keys.begin(), keys.end(), [&](const Value& key) {
            return equals(call.workspace, key, one.key);
        });
        if (known) continue;
        keys.push_back(one.key);
        items.push_back(one.value);
    }
    return list_of(call, items, ListKind::generator);
}

Value groupby(const Call& call) {
    call.needed(0);
    std::vector<Keyed> all = keyed(call, items_of(call.workspace, call.self), call.flag(2, false),
                                   call.given(0), call.given(1));
    sort_by_key(call.workspace, all, false);
    std::vector<Value> groups;
    for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
        std::vector<Value> members;
        while (end < all.size() && equals(call.workspace, all[begin].key, all[end].key)) {
            members.push_back(all[end++].value);
        }
        groups.push_back(pair_of(call, all[begin].shown, list_of(call, members)));
    }
    return list_of(call, groups);
}

const Dict& dict_of(const Call& call) {
    if (!call.self.is(Kind::dict)) call.fail("of " + std::string(type_name(call.self)));
    return *call.self.dict;
}

Value items(const Call& call) {
    std::vector<Value> all;
    if (call.self.is(Kind::undefined)) return list_of(call, all, ListKind::generator);
    for (const Entry& entry : dict_of(call).span()) {
        all.push_back(pair_of(call, entry.key, entry.value));
    }
    return list_of(call, all, ListKind::generator);
}

Value dictsort(const Call& call) {
    const std::string_view by = call.text(1, "key").view();
    if (by != "key" && by != "value") call.fail("by 'key' or 'value'");
    std::vector<Value> pairs;
    for (const Entry& entry : dict_of(call).span()) {
        pairs.push_back(pair_of(call, entry.key, entry.value));
    }
    const Value at = make_integer(by == "key" ? 0 : 1);
    std::vector<Keyed> all = keyed(call, pairs, call.flag(0, false), &at);
    sort_by_key(call.workspace, all, call.flag(2, false));
    pairs.clear();
    for (const Keyed& one : all) pairs.push_back(one.value);
    return list_of(call, pairs);
}

}  // namespace

const Builtins& list_filters() {
    static const Builtins all = {
        {"list", as_list},
        {"join", join, {"d", "attribute"}},
        {"first", first},
        {"last", last},
        {"length", length},
        {"count", length},
        {"reverse", reverse},
        {"batch", batch, {"linecount", "fill_with"}},
        {"slice", slices, {"slices", "fill_with"}},
        {"sum", sum, {"attribute", "start"}},
        {"max", maximum, {"case_sensitive", "attribute"}},
        {"min", minimum, {"case_sensitive", "attribute"}},
        {"sort", sort, {"reverse", "case_sensitive", "attribute"}},
        {"unique", unique, {"case_sensitive", "attribute"}},
        {"groupby", groupby, {"attribute", "default", "case_sensitive"}},
        {"items", items},
        {"dictsort", dictsort, {"case_sensitive", "by", "reverse"}},
    };
    return all;
}

}  // namespace aerie::jinja
