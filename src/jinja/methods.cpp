// Methods of dicts, lists, loops and safe texts, and functions of the language.
#include <algorithm>

#include "jinja/builtins.h"
#include "jinja/operators.h"
#include "jinja/print.h"
#include "jinja/safe_text.h"
#include "jinja/strings.h"

namespace aerie::jinja {
namespace {

constexpr size_t kMaxRange = 100'000;

Value dict_items(const Call& call) {
    const Dict& dict = *call.self.dict;
    std::vector<Value> pairs;
    for (const Entry& entry : dict.span()) {
        pairs.push_back(call.workspace.list({entry.key, entry.value}, ListKind::tuple, dict.label));
    }
    return call.workspace.view(pairs, "dict_items", dict.label);
}

Value dict_part(const Call& call, Value Entry::*part, std::string_view name) {
    const Dict& dict = *call.self.dict;
    std::vector<Value> parts;
    for (const Entry& entry : dict.span()) parts.push_back(entry.*part);
    return call.workspace.view(parts, name, dict.label);
}
Value dict_keys(const Call& call) {
    return dict_part(call, &Entry::key, "dict_keys");
}
Value dict_values(const Call& call) {
    return dict_part(call, &Entry::value, "dict_values");
}

Value dict_get(const Call& call) {
    if (const Value* value = find(call.workspace, *call.self.dict, call.needed(0))) return *value;
    return call.given(1) ? *call.given(1) : make_none();
}

Value dict_copy(const Call& call) {
    return call.self;  // nothing changes either of them
}

Value dict_from_keys(const Call& call) {
    std::vector<Entry> entries;
    const Value value = call.given(1) ? *call.given(1) : make_none();
    for (const Value& key : items_of(call.workspace, call.needed(0))) {
        entries.push_back({key, value});
    }
    return call.workspace.dict(entries, label_of(call.needed(0)));
}

Value list_copy(const Call& call) {
    return call.self;
}

Value list_index(const Call& call) {
    const List& list = *call.self.list;
    const SliceRange range =
        slice_range(list.size, call.optional_whole(1), call.optional_whole(2), 1);
    const auto begin = size_t(range.first);
    for (size_t i = begin; i < begin + range.count; ++i) {
        if (equals(call.workspace, list.items[i], call.needed(0))) {
            return make_integer(int64_t(i), list.label);
        }
    }
    call.fail("not in the list");
}

Value list_count(const Call& call) {
    int64_t count = 0;
    for (const Value& item : call.self.list->span()) {
        count += equals(call.workspace, item, call.needed(0)) ? 1 : 0;
    }
    return make_integer(count, call.self.list->label);
}

Value loop_cycle(const Call& call) {
    const std::vector<Value>& all = call.arguments.positional;
    if (all.empty()) call.fail("nothing to choose from");
    return all[call.self.loop->at % all.size()];
}

Value loop_changed(const Call& call) {
    Loop& loop = *call.self.loop;
    const Value now = call.workspace.list(call.arguments.positional, ListKind::tuple, kTemplate);
    Value before = now;
    before.list = loop.last_changed;
    const bool same = loop.last_changed && equals(call.workspace, before, now);
    loop.last_changed = now.list;
    return make_boolean(!same);
}

Value strip_tags(const Call& call) {
    return make_text(without_tags(call.workspace, call.self.text));
}

Value unescape(const Call& call) {
    return make_text(unescape_html(call.workspace, call.self.text));
}

Value made_turns(const Call& call, Kind kind, const std::vector<Value>& items) {
    const Value all = call.workspace.list(items, ListKind::tuple, kTemplate);
    Value value;
    value.kind = kind;
    value.cycler_state = call.workspace.copy_of(CyclerState{all.list->span()});
    return value;
}

Value make_cycler(const Call& call) {
    if (call.arguments.positional.empty() || !call.arguments.named.empty()) {
        call.fail("at least one item is needed, and no names");
    }
    return made_turns(call, Kind::cycler, call.arguments.positional);
}

Value make_joiner(const Call& call) {
    return made_turns(call, Kind::joiner, {call.given(0) ? *call.given(0) : make_text(", ")});
}

Value cycler_next(const Call& call) {
    CyclerState& cycler_state = *call.self.cycler_state;
    const Value& current = cycler_state.items[cycler_state.at];
    cycler_state.at = (cycler_state.at + 1) % cycler_state.items.size();
    return current;
}

Value cycler_reset(const Call& call) {
    call.self.cycler_state->at = 0;
    return make_none();
}

const Builtin* find_in(const Builtins& all, std::string_view name) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Builtin& builtin) { return builtin.name == name; });
    return found == all.end() ? nullptr : &*found;
}

Value range(const Call& call) {
    const bool has_start = call.given(1) != nullptr;
    call.needed(0);
    const int64_t start = has_start ? call.whole(0, 0) : 0;
    const int64_t stop = has_start ? call.whole(1, 0) : call.whole(0, 0);
    const int64_t step = call.whole(2, 1);
    if (step == 0) call.fail("step of 0");
    Label label = kTemplate;
    for (const Value* bound : call.bound) {
        if (bound) label = std::max(label, label_of(*bound));
    }
    std::vector<Value> items;
    for (int64_t at = start; step > 0 ? at < stop : at > stop;) {
        if (items.size() == kMaxRange)
            call.fail("more than " + std::to_string(kMaxRange) + " numbers");
        call.workspace.touch(sizeof(Value));
        items.push_back(make_integer(at, label));
        if (__builtin_add_overflow(at, step, &at)) break;
    }
    return call.workspace.list(items, ListKind::range, label);
}

Value make_dict(const Call& call) {
    std::vector<Entry> entries;
    Label label = kTemplate;
    for (const Value& base : call.arguments.positional) {
        if (!base.is(Kind::dict)) call.fail("of " + std::string(type_name(base)));
        entries.insert(entries.end(), base.dict->span().begin(), base.dict->span().end());
        label = std::max(label, base.dict->label);
    }
    for (const Named& named : call.arguments.named) {
        entries.push_back({make_text(named.name), named.value});
    }
    return call.workspace.dict(entries, label);
}

Value make_namespace(const Call& call) {
    std::vector<Named> names;
    const Value dict = make_dict(call);
    for (const Entry& entry : dict.dict->span()) {
        if (!entry.key.is(Kind::text)) call.fail("names are strings");
        names.push_back({entry.key.text.view(), entry.value});
    }
    return call.evaluator.new_namespace(names);
}

Value raise_exception(const Call& call) {
    throw Raised(std::string(to_text(call.workspace, call.needed(0)).view()));
}

Value strftime_now(const Call& call) {
    return make_text(time_text(call.workspace, call.needed_text(0), call.evaluator.now()));
}

}  // namespace

const Builtin* find_method(const Value& self, std::string_view name) {
    static const Builtins dicts = {
        {"items", dict_items},   {"keys", dict_keys},
        {"values", dict_values}, {"get", dict_get, {"key", "default"}},
        {"copy", dict_copy},     {"fromkeys", dict_from_keys, {"iterable", "value"}}};
    static const Builtins sequences = {{"index", list_index, {"value", "start", "stop"}},
                                       {"count", list_count, {"value"}}};
    static const Builtins lists = {{"copy", list_copy}};
    static const Builtins cyclers = {{"next", cycler_next}, {"reset", cycler_reset}};
    static const Builtins safe_texts = {{"striptags", strip_tags}, {"unescape", unescape}};
    static const Builtins loops = {{"cycle", loop_cycle, {}, true},
                                   {"changed", loop_changed, {}, true}};
    switch (self.kind) {
        case Kind::text:
            if (const Builtin* method = find_text_method(name)) return method;
            return self.safe ? find_in(safe_texts, name) : nullptr;
        case Kind::cycler:
            return find_in(cyclers, name);
        case Kind::dict:
            return find_in(dicts, name);
        case Kind::loop:
            return find_in(loops, name);
        case Kind::list:
            if (self.list->kind >= ListKind::view) return nullptr;
            if (const Builtin* method = find_in(sequences, name)) return method;
            return self.list->kind == ListKind::list ? find_in(lists, name) : nullptr;
        default:
            return nullptr;
    }
}

const Builtin* find_function(std::string_view name) {
    static const Builtins all = {
        {"range", range, {"start", "stop", "step"}},
        {"dict", make_dict, {}, true},
        {"namespace", make_namespace, {}, true},
        {"cycler", make_cycler, {}, true},
        {"joiner", make_joiner, {"sep"}},
        {"raise_exception", raise_exception, {"message"}},
        {"strftime_now", strftime_now, {"format"}},
    };
    return find_in(all, name);
}

}  // namespace aerie::jinja
