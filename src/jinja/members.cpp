// Members of values, and calls.
#include <algorithm>

#include "core/utf8.h"
#include "jinja/builtins.h"
#include "jinja/characters.h"
#include "jinja/operators.h"
#include "jinja/safe_text.h"

namespace aerie::jinja {
namespace {

[[noreturn]] void fail_undefined(const Value& value) {
    throw Fault(in_quotes(value.text.view()) + " is undefined");
}

// Names of a namespace may be as long as any text, so comparing them is counted.
const Value* in_namespace(Workspace& workspace, const Namespace& names, std::string_view name) {
    for (const auto& [known, value] : names.names) {
        workspace.touch(kBytesPerName + (known.size() == name.size() ? name.size() : 0));
        if (known == name) return &value;
    }
    return nullptr;
}

bool has_attributes(const Value& value) {
    return value.is(Kind::name_space) || value.is(Kind::loop) || value.is(Kind::macro) ||
           value.is(Kind::cycler) || value.is(Kind::joiner);
}

Value macro_attribute(Workspace& workspace, const Macro& macro, std::string_view name) {
    const Statement& statement = *macro.statement;
    const MacroNames& special = statement.special;
    if (name == "name") {
        return statement.text.empty() ? make_none() : make_text(statement.text);
    }
    if (name == "arguments") {
        std::vector<Value> names;
        for (const std::string& one : statement.names) names.push_back(make_text(one));
        return workspace.list(names, ListKind::tuple, kTemplate);
    }
    if (name == "catch_varargs") return make_boolean(special.varargs);
    if (name == "catch_kwargs") return make_boolean(special.kwargs);
    if (name == "caller") return make_boolean(special.caller);
    return make_undefined(name);
}

Value cycler_attribute(Workspace& workspace, const Value& cycler, std::string_view name) {
    const CyclerState& cycler_state = *cycler.cycler_state;
    if (name == "current") return cycler_state.items[cycler_state.at];
    if (name == "pos") return make_integer(int64_t(cycler_state.at));
    if (name != "items") return make_undefined(name);
    const std::vector<Value> items(cycler_state.items.begin(), cycler_state.items.end());
    return workspace.list(items, ListKind::tuple, cycler.label);
}

Value joiner_attribute(const Value& joiner, std::string_view name) {
    if (name == "sep") return joiner.cycler_state->items[0];
    return name == "used" ? make_boolean(joiner.cycler_state->at > 0) : make_undefined(name);
}

// The separator, except at the first call.
Value next_separator(CyclerState& cycler_state) {
    return cycler_state.at++ == 0 ? make_text("") : cycler_state.items[0];
}

}  // namespace

Value Evaluator::attribute(const Value& value, std::string_view name) {
    if (value.is(Kind::undefined)) fail_undefined(value);
    if (find_method(value, name)) {
        Value method;
        method.kind = Kind::function;
        method.label = label_of(value);
        method.function = workspace_.copy_of(Function{name, workspace_.copy_of(value)});
        return method;
    }
    if (value.is(Kind::name_space)) {
        const Value* found = in_namespace(workspace_, *value.name_space, name);
        return found ? *found : make_undefined(name);
    }
    if (value.is(Kind::loop)) return loop_attribute(*value.loop, name);
    if (value.is(Kind::macro)) return macro_attribute(workspace_, *value.macro, name);
    if (value.is(Kind::cycler)) return cycler_attribute(workspace_, value, name);
    if (value.is(Kind::joiner)) return joiner_attribute(value, name);
    if (value.is(Kind::dict)) {
        const Value* found = find(workspace_, *value.dict, name);
        if (found) return *found;
    }
    return make_undefined(name);
}

Value Evaluator::item(const Value& value, const Value& key) {
    if (value.is(Kind::undefined)) fail_undefined(value);
    if (value.is(Kind::dict)) {
        if (const Value* found = find(workspace_, *value.dict, key)) return *found;
        if (!key.is(Kind::text)) return make_undefined("item");
    }
    if (key.is(Kind::text)) {
        if (find_method(value, key.text.view()) || has_attributes(value)) {
            return attribute(value, key.text.view());
        }
        return make_undefined(key.text.view());
    }
    if (!key.is_whole()) return make_undefined("item");
    const bool is_text = value.is(Kind::text);
    if (!is_text && (!value.is(Kind::list) || value.list->kind >= ListKind::view)) {
        return make_undefined("item");
    }
    const int64_t size = length_of(workspace_, value);
    const int64_t at = key.whole() < 0 ? key.whole() + size : key.whole();
    if (at < 0 || at >= size) return make_undefined("item beyond the end");
    if (!is_text) return value.list->items[at];
    workspace_.touch(value.text.size);
    const size_t byte = byte_of_char(value.text.view(), size_t(at));
    return make_text_like(value, value.text.part(byte, char_size(value.text.data[byte])));
}

Value Evaluator::loop_attribute(const Loop& loop, std::string_view name) {
    const auto at = int64_t(loop.at), size = int64_t(loop.items.size());
    const auto number = [&](int64_t value) { return make_integer(value, loop.label); };
    if (name == "index") return number(at + 1);
    if (name == "index0") return number(at);
    if (name == "revindex") return number(size - at);
    if (name == "revindex0") return number(size - at - 1);
    if (name == "first") return make_boolean(at == 0, loop.label);
    if (name == "last") return make_boolean(at + 1 == size, loop.label);
    if (name == "length") return number(size);
    if (name == "depth") return make_integer(loop.depth);
    if (name == "depth0") return make_integer(loop.depth - 1);
    if (name == "previtem" && at > 0) return loop.items[loop.at - 1];
    if (name == "nextitem" && at + 1 < size) return loop.items[loop.at + 1];
    return make_undefined(name);
}

Value Evaluator::new_namespace(const std::vector<Named>& names) {
    Namespace& made = namespaces_.emplace_back(Namespace{NamedValues(workspace_.memory())});
    for (const Named& named : names) made.names.emplace_back(named.name, named.value);
    Value value;
    value.kind = Kind::name_space;
    value.name_space = &made;
    return value;
}

Value Evaluator::apply_filter(std::string_view name, const Value& value,
                              const Arguments& arguments) {
    const Level level(*this);  // a filter may apply others
    const Builtin* filter = find_filter(name);
    if (!filter) throw Fault("unknown filter " + in_quotes(name));
    return jinja::run(*filter, *this, value, arguments);
}

bool Evaluator::apply_test(std::string_view name, const Value& value, const Arguments& arguments) {
    const Builtin* test = find_test(name);
    if (!test) throw Fault("unknown test " + in_quotes(name));
    return is_true(jinja::run(*test, *this, value, arguments));
}

Value Evaluator::call(const Value& callee, const Arguments& arguments) {
    if (callee.is(Kind::undefined)) fail_undefined(callee);
    if (callee.is(Kind::macro)) return call_macro(*callee.macro, arguments);
    if (callee.is(Kind::loop)) return call_loop(*callee.loop, arguments);
    if (callee.is(Kind::joiner)) {
        if (!arguments.positional.empty() || !arguments.named.empty()) {
            throw Fault("a joiner takes no arguments");
        }
        return next_separator(*callee.cycler_state);
    }
    if (!callee.is(Kind::function)) {
        throw Fault(std::string(type_name(callee)) + " cannot be called");
    }
    const Function& function = *callee.function;
    const Value self = function.self ? *function.self : Value();
    const Builtin* builtin =
        function.self ? find_method(self, function.name) : find_function(function.name);
    if (self.is(Kind::text) && self.safe) return call_of_safe(*builtin, *this, self, arguments);
    return jinja::run(*builtin, *this, self, arguments);
}

void Evaluator::enter_call() {
    if (calls_ == kMaxDepth) {
        throw Fault("macros or loops that call each other deeper than " +
                    std::to_string(kMaxDepth));
    }
    ++calls_;
}

// loop(items) runs the loop again, with these items.
Value Evaluator::call_loop(const Loop& loop, const Arguments& arguments) {
    const Level level(*this);
    if (!loop.recursive) throw Fault("a loop that is not marked 'recursive' cannot be called");
    if (arguments.positional.size() != 1 || !arguments.named.empty()) {
        throw Fault("a loop is called with what it is to go through");
    }
    enter_call();
    const Text text = captured(
        *loop.scope, [&] { run_loop(*loop.recursive, arguments.positional[0], loop.depth + 1); });
    --calls_;
    return make_text(text);
}

Value Evaluator::call_macro(const Macro& macro, const Arguments& arguments) {
    const Level level(*this);
    enter_call();
    Frame& frame = new_frame(macro.scope);
    bind(macro, arguments, frame);
    const Text text = captured(macro.statement->bodies[0], frame);
    --calls_;
    return make_text(text);
}

// Sets the parameters that the call names, and collects the other named arguments for `kwargs`.
void Evaluator::bind_named(const Macro& macro, const Arguments& arguments, Frame& frame) {
    const Statement& statement = *macro.statement;
    const std::vector<std::string>& names = statement.names;
    std::vector<Entry> others;
    const bool has_caller = std::find(names.begin(), names.end(), "caller") != names.end();
    if (statement.special.caller && !has_caller) set(frame, "caller", make_undefined("caller"));
    for (const Named& argument : arguments.named) {
        workspace_.touch(kBytesPerName * (1 + names.size()));
        const auto known = std::find(names.begin(), names.end(), argument.name);
        if (known != names.end() && size_t(known - names.begin()) >= arguments.positional.size()) {
            set(frame, *known, argument.value);
        } else if (argument.name == "caller" && statement.special.caller && !has_caller) {
            set(frame, "caller", argument.value);
        } else if (statement.special.kwargs) {
            others.push_back({make_text(argument.name), argument.value});
        } else {
            throw Fault("macro " + in_quotes(statement.text) + " and argument " +
                        in_quotes(argument.name));
        }
    }
    if (statement.special.kwargs) set(frame, "kwargs", workspace_.unique_dict(others, kTemplate));
}

// Sets the macro's parameters: to the values of the call, then to the defaults.
void Evaluator::bind(const Macro& macro, const Arguments& arguments, Frame& frame) {
    const Statement& statement = *macro.statement;
    const std::vector<std::string>& names = statement.names;
    const size_t given = std::min(arguments.positional.size(), names.size());
    if (given < arguments.positional.size() && !statement.special.varargs) {
        throw Fault("too many arguments for macro " + in_quotes(statement.text));
    }
    for (size_t i = 0; i < given; ++i) set(frame, names[i], arguments.positional[i]);
    if (statement.special.varargs) {
        const std::vector<Value> rest(arguments.positional.begin() + std::ptrdiff_t(given),
                                      arguments.positional.end());
        set(frame, "varargs", workspace_.list(rest, ListKind::tuple, kTemplate));
    }
    bind_named(macro, arguments, frame);
    const size_t without_default = names.size() - statement.expressions.size();
    Frame* const outside = std::exchange(scope_, &frame);
    for (size_t i = given; i < names.size(); ++i) {
        workspace_.touch(kBytesPerName * frame.names.size());
        const auto is_it = [&](const auto& known) { return known.first == names[i]; };
        if (std::any_of(frame.names.begin(), frame.names.end(), is_it)) continue;
        set(frame, names[i],
            i < without_default ? make_undefined(names[i])
                                : evaluate(statement.expressions[i - without_default]));
    }
    scope_ = outside;
}

}  // namespace aerie::jinja
