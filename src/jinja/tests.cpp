// The tests that can stand after `is`.
#include <unordered_map>

#include "jinja/builtins.h"
#include "jinja/operators.h"
#include "jinja/strings.h"

namespace aerie::jinja {
namespace {

template <Kind kKind>
Value is_kind(const Call& call) {
    return make_boolean(call.self.is(kKind));
}

Value is_defined(const Call& call) {
    return make_boolean(!call.self.is(Kind::undefined));
}

Value is_number(const Call& call) {
    return make_boolean(call.self.is_number());
}

Value is_iterable(const Call& call) {
    const Kind kind = call.self.kind;
    return make_boolean(kind == Kind::text || kind == Kind::list || kind == Kind::dict ||
                        kind == Kind::undefined || kind == Kind::loop);
}

// Whether the value has a length, and items by number or key.
Value is_sequence(const Call& call) {
    const Kind kind = call.self.kind;
    const bool is_list = kind == Kind::list && call.self.list->kind < ListKind::view;
    return make_boolean(kind == Kind::text || kind == Kind::dict || kind == Kind::undefined ||
                        is_list);
}

Value is_callable(const Call& call) {
    const Kind kind = call.self.kind;
    return make_boolean(kind == Kind::function || kind == Kind::macro || kind == Kind::loop ||
                        kind == Kind::joiner);
}

Value is_escaped(const Call& call) {
    return make_boolean(call.self.is(Kind::text) && call.self.safe);
}

template <bool kWanted>
Value is_boolean(const Call& call) {
    return make_boolean(call.self.is(Kind::boolean) && call.self.boolean == kWanted);
}

int64_t remainder(const Call& call, const Value& by) {
    const Value rest = arithmetic(call.workspace, "%", call.self, by);
    if (!rest.is_number()) call.fail("of " + std::string(type_name(call.self)));
    return rest.number() == 0 ? 0 : rest.number() == 1 ? 1 : 2;
}

Value is_odd(const Call& call) {
    return make_boolean(remainder(call, make_integer(2)) == 1);
}
Value is_even(const Call& call) {
    return make_boolean(remainder(call, make_integer(2)) == 0);
}
Value is_divisible(const Call& call) {
    return make_boolean(remainder(call, call.needed(0)) == 0);
}

Value is_equal(const Call& call) {
    return make_boolean(equals(call.workspace, call.self, call.needed(0)));
}
Value is_unequal(const Call& call) {
    return make_boolean(!equals(call.workspace, call.self, call.needed(0)));
}
Value is_greater(const Call& call) {
    return make_boolean(compare(call.workspace, call.self, call.needed(0)) > 0);
}
Value is_not_less(const Call& call) {
    return make_boolean(compare(call.workspace, call.self, call.needed(0)) >= 0);
}
Value is_less(const Call& call) {
    return make_boolean(compare(call.workspace, call.self, call.needed(0)) < 0);
}
Value is_not_greater(const Call& call) {
    return make_boolean(compare(call.workspace, call.self, call.needed(0)) <= 0);
}
Value is_in(const Call& call) {
    return make_boolean(contains(call.workspace, call.needed(0), call.self));
}

// Whether both are the same object; for numbers and strings, whether they are equal.
Value is_same(const Call& call) {
    const Value& other = call.needed(0);
    if (call.self.kind != other.kind || call.self.safe != other.safe) return make_boolean(false);
    if (other.is(Kind::list)) return make_boolean(call.self.list == other.list);
    if (other.is(Kind::dict)) return make_boolean(call.self.dict == other.dict);
    return make_boolean(equals(call.workspace, call.self, other));
}

Value is_upper_case(const Call& call) {
    return make_boolean(is_cased(call.workspace, call.own_text(), Case::upper));
}
Value is_lower_case(const Call& call) {
    return make_boolean(is_cased(call.workspace, call.own_text(), Case::lower));
}

Value is_filter(const Call& call) {
    return make_boolean(find_filter(call.own_text().view()) != nullptr);
}
Value is_test(const Call& call) {
    return make_boolean(find_test(call.own_text().view()) != nullptr);
}

const Builtins& simple_tests() {
    static const Builtins all = {
        {"defined", is_defined},
        {"undefined", is_kind<Kind::undefined>},
        {"none", is_kind<Kind::none>},
        {"string", is_kind<Kind::text>},
        {"number", is_number},
        {"integer", is_kind<Kind::integer>},
        {"float", is_kind<Kind::real>},
        {"boolean", is_kind<Kind::boolean>},
        {"mapping", is_kind<Kind::dict>},
        {"iterable", is_iterable},
        {"sequence", is_sequence},
        {"callable", is_callable},
        {"escaped", is_escaped},
        {"true", is_boolean<true>},
        {"false", is_boolean<false>},
        {"odd", is_odd},
        {"even", is_even},
        {"upper", is_upper_case},
        {"lower", is_lower_case},
        {"filter", is_filter},
        {"test", is_test},
    };
    return all;
}

const Builtins& tests_with_another() {
    static const Builtins all = {
        {"divisibleby", is_divisible, {"num"}},
        {"eq", is_equal, {"other"}},
        {"equalto", is_equal, {"other"}},
        {"==", is_equal, {"other"}},
        {"ne", is_unequal, {"other"}},
        {"!=", is_unequal, {"other"}},
        {"gt", is_greater, {"other"}},
        {"greaterthan", is_greater, {"other"}},
        {">", is_greater, {"other"}},
        {"ge", is_not_less, {"other"}},
        {">=", is_not_less, {"other"}},
        {"lt", is_less, {"other"}},
        {"lessthan", is_less, {"other"}},
        {"<", is_less, {"other"}},
        {"le", is_not_greater, {"other"}},
        {"<=", is_not_greater, {"other"}},
        {"in", is_in, {"seq"}},
        {"sameas", is_same, {"other"}},
    };
    return all;
}

}  // namespace

const Builtin* find_test(std::string_view name) {
    static const std::unordered_map<std::string_view, const Builtin*> table = [] {
        std::unordered_map<std::string_view, const Builtin*> made;
        for (const Builtins* part : {&simple_tests(), &tests_with_another()}) {
            for (const Builtin& test : *part) made.emplace(test.name, &test);
        }
        return made;
    }();
    const auto found = table.find(name);
    return found == table.end() ? nullptr : found->second;
}

}  // namespace aerie::jinja
