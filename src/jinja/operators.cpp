// Compares values, and finds their items.
#include "jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "jinja/characters.h"

namespace aerie::jinja {
namespace {

constexpr size_t kBytesPerLookup = 16;  // the cost of comparing a key

int sign_of(auto a, auto b) {
    return a < b ? -1 : b < a ? 1 : 0;
}

// An exact comparison: a conversion to double would make different numbers equal.
int compare_whole_to_real(int64_t whole, double real) {
    constexpr double kLimit = 9223372036854775808.0;
    if (std::isnan(real) || real >= kLimit) return -1;
    if (real < -kLimit) return 1;
    const int by_whole_part = sign_of(whole, int64_t(real));
    return by_whole_part != 0 ? by_whole_part : sign_of(std::trunc(real), real);
}

int compare_numbers(const Value& a, const Value& b) {
    if (a.is_whole() && b.is_whole()) return sign_of(a.whole(), b.whole());
    if (a.is_whole()) return compare_whole_to_real(a.whole(), b.real);
    if (b.is_whole()) return -compare_whole_to_real(b.whole(), a.real);
    if (std::isnan(a.real) || std::isnan(b.real)) {
        return sign_of(std::isnan(a.real), std::isnan(b.real));
    }
    return sign_of(a.real, b.real);
}

bool is_nan(const Value& value) {
    return value.is(Kind::real) && std::isnan(value.real);
}

bool equal_lists(Workspace& workspace, const List& a, const List& b) {
    if (&a == &b) return true;
    if (a.kind != b.kind || a.size != b.size || a.kind >= ListKind::view) return false;
    for (size_t i = 0; i < a.size; ++i) {
        if (!equals(workspace, a.items[i], b.items[i])) return false;
    }
    return true;
}

bool equal_dicts(Workspace& workspace, const Dict& a, const Dict& b) {
    if (&a == &b) return true;
    if (a.size != b.size) return false;
    for (const Entry& entry : a.span()) {
        const Value* other = find(workspace, b, entry.key);
        if (!other || !equals(workspace, entry.value, *other)) return false;
    }
    return true;
}

int compare_lists(Workspace& workspace, const List& a, const List& b) {
    for (size_t i = 0; i < std::min(a.size, b.size); ++i) {
        if (equals(workspace, a.items[i], b.items[i])) continue;
        return compare(workspace, a.items[i], b.items[i]);
    }
    return sign_of(a.size, b.size);
}

bool is_hashable(Workspace& workspace, const Value& key) {
    workspace.touch(1);
    if (key.is(Kind::dict)) return false;
    if (!key.is(Kind::list)) return true;
    const std::span<const Value> items = key.list->span();
    return key.list->kind == ListKind::tuple &&
           std::all_of(items.begin(), items.end(),
                       [&](const Value& item) { return is_hashable(workspace, item); });
}

}  // namespace

bool equals(Workspace& workspace, const Value& a, const Value& b) {
    workspace.touch(kBytesPerLookup);
    if (a.is_number() && b.is_number()) {
        return !is_nan(a) && !is_nan(b) && compare_numbers(a, b) == 0;
    }
    if (a.kind != b.kind) return false;
    switch (a.kind) {
        case Kind::text:
            if (a.text.size == b.text.size) workspace.touch(a.text.size);
            return a.text.view() == b.text.view();
        case Kind::list:
            return equal_lists(workspace, *a.list, *b.list);
        case Kind::dict:
            return equal_dicts(workspace, *a.dict, *b.dict);
        case Kind::name_space:
            return a.name_space == b.name_space;
        case Kind::macro:
            return a.macro == b.macro;
        case Kind::loop:
            return a.loop == b.loop;
        case Kind::function:
            return a.function == b.function;
        case Kind::cycler:
        case Kind::joiner:
            return a.cycler_state == b.cycler_state;
        default:
            return true;  // none, undefined
    }
}

int compare(Workspace& workspace, const Value& a, const Value& b) {
    workspace.touch(kBytesPerLookup);
    if (a.is_number() && b.is_number()) return compare_numbers(a, b);
    if (a.is(Kind::text) && b.is(Kind::text)) {
        workspace.touch(std::min(a.text.size, b.text.size));
        return sign_of(a.text.view(), b.text.view());
    }
    if (a.is(Kind::list) && b.is(Kind::list) && a.list->kind == b.list->kind &&
        a.list->kind <= ListKind::tuple) {
        return compare_lists(workspace, *a.list, *b.list);
    }
    throw Fault("cannot order " + std::string(type_name(a)) + " and " + std::string(type_name(b)));
}

size_t position_of(Workspace& workspace, const Dict& dict, const Value& key) {
    if (!is_hashable(workspace, key)) throw Fault(std::string(type_name(key)) + " as a key");
    for (size_t i = 0; i < dict.size; ++i) {
        if (equals(workspace, dict.entries[i].key, key)) return i;
    }
    return dict.size;
}

const Value* find(Workspace& workspace, const Dict& dict, const Value& key) {
    const size_t at = position_of(workspace, dict, key);
    return at < dict.size ? &dict.entries[at].value : nullptr;
}

const Value* find(Workspace& workspace, const Dict& dict, std::string_view key) {
    return find(workspace, dict, make_text(key));
}

bool contains(Workspace& workspace, const Value& whole, const Value& part) {
    if (whole.is(Kind::text)) {
        if (!part.is(Kind::text)) {
            throw Fault("'in' of a string needs a string, not " + std::string(type_name(part)));
        }
        return find_text(workspace, whole.text.view(), part.text.view()) != std::string_view::npos;
    }
    if (whole.is(Kind::dict)) return find(workspace, *whole.dict, part) != nullptr;
    if (whole.is(Kind::list) && whole.list->kind == ListKind::generator) {
        const List& list = *whole.list;  // read up to the item that is looked for
        while (list.generated < list.size) {
            if (equals(workspace, list.items[list.generated++], part)) return true;
        }
        return false;
    }
    for (const Value& item : items_of(workspace, whole)) {
        if (equals(workspace, item, part)) return true;
    }
    return false;
}

std::span<const Value> items_of(Workspace& workspace, const Value& value) {
    std::vector<Value> items;
    switch (value.kind) {
        case Kind::undefined:
            return {};
        case Kind::list: {
            const List& list = *value.list;
            if (list.kind != ListKind::generator) return list.span();
            const size_t taken = list.generated;
            list.generated = list.size;
            return list.span().subspan(taken);
        }
        case Kind::dict:
            for (const Entry& entry : value.dict->span()) items.push_back(entry.key);
            break;
        case Kind::text:
            for (size_t at = 0; at < value.text.size;) {
                const size_t size = char_size(value.text.data[at]);
                workspace.add_item(items.size());
                items.push_back(make_text(value.text.part(at, size)));
                at += size;
            }
            break;
        default:
            throw Fault(std::string(type_name(value)) + " cannot be gone through");
    }
    return workspace.list(items, ListKind::list, label_of(value)).list->span();
}

int64_t length_of(Workspace& workspace, const Value& value) {
    switch (value.kind) {
        case Kind::undefined:
            return 0;
        case Kind::text:
            return int64_t(char_count(workspace, value.text.view()));
        case Kind::dict:
            return value.dict->size;
        case Kind::loop:
            return int64_t(value.loop->items.size());
        case Kind::list:
            if (value.list->kind != ListKind::generator) return value.list->size;
            [[fallthrough]];
        default:
            throw Fault(std::string(type_name(value)) + " has no length");
    }
}

}  // namespace aerie::jinja
