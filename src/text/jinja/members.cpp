// What a value has inside, and calling it.
#include <algorithm>

#include "core/utf8.h"
#include "text/jinja/builtins.h"
#include "text/jinja/characters.h"
#include "text/jinja/operators.h"

namespace aerie::jinja {
namespace {

[[noreturn]] void fail_undefined(const Value& value) {
    throw Fault(in_quotes(value.text.view()) + " is undefined");
}

// Its names may be as long as any text.
const Value* in_namespace(Workspace& workspace, const Namespace& names, std::string_view name) {
    for (const auto& [known, value] : names.names) {
        workspace.touch(kBytesPerName + (known.size() == name.size() ? name.size() : 0));
        if (known == name) return &value;
    }
    return nullptr;
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
        if (find_method(value, key.text.view()) || value.is(Kind::name_space) ||
            value.is(Kind::loop)) {
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
    return make_text(value.text.part(byte, char_size(value.text.data[byte])));
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
    if (name == "depth") return number(1);
    if (name == "depth0") return number(0);
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
    if (!callee.is(Kind::function)) {
        throw Fault(std::string(type_name(callee)) + " cannot be called");
    }
    const Function& function = *callee.function;
    const Value self = function.self ? *function.self : Value();
    const Builtin* builtin =
        function.self ? find_method(self, function.name) : find_function(function.name);
    return jinja::run(*builtin, *this, self, arguments);
}

Value Evaluator::call_macro(const Macro& macro, const Arguments& arguments) {
    const Level level(*this);
    if (calls_ == kMaxDepth) {
        throw Fault("macros that call each other deeper than " + std::to_string(kMaxDepth));
    }
    Frame& frame = new_frame(macro.scope);
    ++calls_;
    bind(macro, arguments, frame);
    const Text text = captured(macro.statement->bodies[0], frame);
    --calls_;
    return make_text(text);
}

// Gives the macro's parameters their values: those of the call, then the defaults.
void Evaluator::bind(const Macro& macro, const Arguments& arguments, Frame& frame) {
    const Statement& statement = *macro.statement;
    const std::vector<std::string>& names = statement.names;
    if (arguments.positional.size() > names.size()) {
        throw Fault("too many arguments for macro " + in_quotes(statement.text));
    }
    for (size_t i = 0; i < arguments.positional.size(); ++i) {
        set(frame, names[i], arguments.positional[i]);
    }
    for (const Named& argument : arguments.named) {
        workspace_.touch(kBytesPerName * names.size());
        const auto known = std::find(names.begin(), names.end(), argument.name);
        if (known == names.end() || size_t(known - names.begin()) < arguments.positional.size()) {
            throw Fault("macro " + in_quotes(statement.text) + " and argument " +
                        in_quotes(argument.name));
        }
        set(frame, *known, argument.value);
    }
    const size_t without_default = names.size() - statement.expressions.size();
    Frame* const outside = std::exchange(scope_, &frame);
    for (size_t i = arguments.positional.size(); i < names.size(); ++i) {
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
