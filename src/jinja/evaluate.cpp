// Evaluates expressions.
#include <algorithm>

#include "core/utf8.h"
#include "jinja/builtins.h"
#include "jinja/operators.h"
#include "jinja/print.h"
#include "jinja/strings.h"

namespace aerie::jinja {
namespace {

constexpr size_t kMaxArguments = 255;  // nested calls all hold theirs at once

[[noreturn]] void fail_arguments() {
    throw Fault("more than " + std::to_string(kMaxArguments) + " arguments");
}

}  // namespace

Value Evaluator::evaluate(const Expression& expression) {
    workspace_.step();
    line_ = expression.line;
    switch (expression.kind) {
        case ExpressionKind::none:
            return make_none();
        case ExpressionKind::boolean:
            return make_boolean(expression.integer != 0);
        case ExpressionKind::integer:
            return make_integer(expression.integer);
        case ExpressionKind::real:
            return make_real(expression.real);
        case ExpressionKind::string:
            return make_text(expression.text);
        case ExpressionKind::name:
            return name(expression.text);
        default:
            return compound(expression);
    }
}

Value Evaluator::compound(const Expression& expression) {
    const Level level(*this);
    switch (expression.kind) {
        case ExpressionKind::list:
        case ExpressionKind::tuple:
            return list(expression);
        case ExpressionKind::dict:
            return dict(expression);
        case ExpressionKind::negative:
            return negative(evaluate(expression.parts[0]));
        case ExpressionKind::positive:
            return negative(negative(evaluate(expression.parts[0])));
        case ExpressionKind::logical_not: {
            const Value value = evaluate(expression.parts[0]);
            return make_boolean(!is_true(value), label_of(value));
        }
        case ExpressionKind::logical_and:
        case ExpressionKind::logical_or:
            return logical(expression);
        case ExpressionKind::chain:
            return chain(expression);
        case ExpressionKind::comparison:
            return comparison(expression);
        case ExpressionKind::concat:
            return concat(expression);
        case ExpressionKind::conditional:
            return conditional(expression);
        default:
            return stepped(expression, evaluate(expression.parts[0]));
    }
}

Value Evaluator::name(std::string_view name) {
    for (const Frame* frame = scope_; frame; frame = frame->parent) {
        workspace_.touch(kBytesPerName * (1 + frame->names.size()));
        for (const auto& [known, value] : frame->names) {
            if (known == name) return value;
        }
    }
    if (!find_function(name)) return make_undefined(name);
    Value value;
    value.kind = Kind::function;
    value.function = workspace_.copy_of(Function{name, nullptr});
    return value;
}

Value Evaluator::list(const Expression& expression) {
    std::vector<Value> items;
    for (const Expression& part : expression.parts) items.push_back(evaluate(part));
    const bool is_tuple = expression.kind == ExpressionKind::tuple;
    return workspace_.list(items, is_tuple ? ListKind::tuple : ListKind::list, kTemplate);
}

Value Evaluator::dict(const Expression& expression) {
    std::vector<Entry> entries;
    for (size_t i = 0; i < expression.parts.size(); i += 2) {
        const Value key = evaluate(expression.parts[i]);
        entries.push_back({key, evaluate(expression.parts[i + 1])});
    }
    return workspace_.dict(entries, kTemplate);
}

// A sum of many strings is built once.
Value Evaluator::chain(const Expression& expression) {
    Value left = evaluate(expression.parts[0]);
    std::optional<TextBuilder> sum;
    for (size_t i = 0; i < expression.ops.size(); ++i) {
        const Value right = evaluate(expression.parts[i + 1]);
        const bool are_plain =
            left.is(Kind::text) && right.is(Kind::text) && !left.safe && !right.safe;
        if (expression.ops[i] == "+" && are_plain) {
            if (!sum) sum.emplace(workspace_).add(left.text);
            sum->add(right.text);
            continue;
        }
        if (sum) left = make_text(sum->text());
        sum.reset();
        left = arithmetic(workspace_, expression.ops[i], left, right);
    }
    return sum ? make_text(sum->text()) : left;
}

bool Evaluator::holds(std::string_view op, const Value& a, const Value& b) {
    if (op == "==") return equals(workspace_, a, b);
    if (op == "!=") return !equals(workspace_, a, b);
    if (op == "in") return contains(workspace_, b, a);
    if (op == "not in") return !contains(workspace_, b, a);
    const auto is_nan = [](const Value& value) {
        return value.is(Kind::real) && value.real != value.real;
    };
    const int order = compare(workspace_, a, b);
    if (is_nan(a) || is_nan(b)) return false;
    if (op == "<") return order < 0;
    if (op == "<=") return order <= 0;
    return op == ">" ? order > 0 : order >= 0;
}

// Each operand is evaluated once, and none after the first comparison that does not hold.
Value Evaluator::comparison(const Expression& expression) {
    Value left = evaluate(expression.parts[0]);
    Label label = label_of(left);
    for (size_t i = 0; i < expression.ops.size(); ++i) {
        const Value right = evaluate(expression.parts[i + 1]);
        label = std::max(label, label_of(right));
        if (!holds(expression.ops[i], left, right)) return make_boolean(false, label);
        left = right;
    }
    return make_boolean(true, label);
}

// The first operand that decides the result.
Value Evaluator::logical(const Expression& expression) {
    const bool decides = expression.kind == ExpressionKind::logical_or;
    Value value;
    for (const Expression& part : expression.parts) {
        value = evaluate(part);
        if (is_true(value) == decides) break;
    }
    return value;
}

Value Evaluator::concat(const Expression& expression) {
    TextBuilder text(workspace_);
    for (const Expression& part : expression.parts) print(text, workspace_, evaluate(part));
    return make_text(text.text());
}

Value Evaluator::conditional(const Expression& expression) {
    if (is_true(evaluate(expression.parts[1]))) return evaluate(expression.parts[0]);
    if (expression.parts.size() == 3) return evaluate(expression.parts[2]);
    return make_undefined("if without else");
}

Value Evaluator::stepped(const Expression& expression, const Value& first) {
    Value value = first;
    for (const Step& one : expression.steps) {
        workspace_.step();
        line_ = one.line;
        value = step(one, value);
    }
    return value;
}

Value Evaluator::step(const Step& step, const Value& value) {
    switch (step.kind) {
        case StepKind::attribute:
            return attribute(value, step.name);
        case StepKind::item:
            return item(value, evaluate(step.arguments[0].value[0]));
        case StepKind::slice:
            return slice(step, value);
        case StepKind::call:
            return call(value, arguments(step));
        case StepKind::filter:
            return apply_filter(step.name, value, arguments(step));
        case StepKind::test:
        case StepKind::test_not:
            break;
    }
    const Arguments given = arguments(step);
    Label label = label_of(value);
    for (const Value& argument : given.positional) label = std::max(label, label_of(argument));
    const bool result = apply_test(step.name, value, given);
    return make_boolean(result != (step.kind == StepKind::test_not), label);
}

Value Evaluator::slice(const Step& step, const Value& value) {
    std::optional<int64_t> bounds[3];
    Label label = label_of(value);
    for (size_t i = 0; i < 3; ++i) {
        if (step.arguments[i].value.empty()) continue;
        const Value bound = evaluate(step.arguments[i].value[0]);
        if (bound.is(Kind::none)) continue;
        if (!bound.is_whole()) throw Fault("slice from or to what is no whole number");
        bounds[i] = bound.whole();
        label = std::max(label, label_of(bound));
    }
    const int64_t by = bounds[2].value_or(1);
    if (value.is(Kind::text)) {
        return make_text_like(value,
                              jinja::slice(workspace_, value.text, bounds[0], bounds[1], by));
    }
    if (value.is(Kind::undefined)) throw Fault(in_quotes(value.text.view()) + " is undefined");
    if (!value.is(Kind::list) || value.list->kind >= ListKind::view) {
        throw Fault("slice of " + std::string(type_name(value)));
    }
    const List& list = *value.list;
    std::vector<Value> items;
    const SliceRange range = slice_range(list.size, bounds[0], bounds[1], by);
    items.reserve(range.count);
    for (size_t i = 0; i < range.count; ++i) items.push_back(list.items[range.at(i)]);
    return workspace_.list(items, list.kind, label);
}

Arguments Evaluator::arguments(const Step& step) {
    if (step.arguments.size() > kMaxArguments) fail_arguments();
    Arguments all;
    for (const Argument& argument : step.arguments) {
        const Value value = evaluate(argument.value[0]);
        if (argument.spread != Spread::no) {
            spread(argument, value, all);
        } else if (argument.name.empty()) {
            all.positional.push_back(value);
        } else {
            all.named.push_back({argument.name, value});
        }
    }
    if (all.positional.size() + all.named.size() > kMaxArguments) fail_arguments();
    return all;
}

// Arguments given as *value and **value.
void Evaluator::spread(const Argument& argument, const Value& value, Arguments& all) {
    if (argument.spread == Spread::items) {
        if (value.is(Kind::undefined)) throw Fault(in_quotes(value.text.view()) + " is undefined");
        const std::span<const Value> items = items_of(workspace_, value);
        if (items.size() > kMaxArguments) fail_arguments();
        all.positional.insert(all.positional.end(), items.begin(), items.end());
        return;
    }
    if (!value.is(Kind::dict)) throw Fault("** of " + std::string(type_name(value)));
    if (value.dict->size > kMaxArguments) fail_arguments();
    for (const Entry& entry : value.dict->span()) {
        if (!entry.key.is(Kind::text)) throw Fault("** of a dict whose keys are no strings");
        const std::string_view name = entry.key.text.view();
        for (const Named& named : all.named) {
            if (named.name == name) throw Fault("argument " + in_quotes(name) + " twice");
        }
        all.named.push_back({name, entry.value});
    }
}

}  // namespace aerie::jinja
