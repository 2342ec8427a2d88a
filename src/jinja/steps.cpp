// Parses the steps behind a value: .name, [item], (arguments), |filter, is test. And targets of
// set.
#include <algorithm>

#include "jinja/parser.h"

namespace aerie::jinja {
namespace {

// Adds a step to the value, which is wrapped first unless it has steps already.
void add_step(Expression& value, Step step) {
    if (value.kind != ExpressionKind::steps) {
        Expression whole;
        whole.kind = ExpressionKind::steps;
        whole.line = value.line;
        whole.parts.push_back(std::move(value));
        value = std::move(whole);
    }
    value.steps.push_back(std::move(step));
}

}  // namespace

void Parser::unfiltered_steps(Expression& value) {
    for (;;) {
        if (peek().is_op(".")) {
            add_step(value, attribute());
        } else if (peek().is_op("[")) {
            add_step(value, subscript());
        } else if (peek().is_op("(")) {
            add_step(value, call());
        } else {
            return;
        }
    }
}

void Parser::filter_steps(Expression& value) {
    for (;;) {
        if (peek().is_op("|")) {
            add_step(value, filter());
        } else if (peek().is_name("is")) {
            add_step(value, test());
        } else if (peek().is_op("(")) {
            add_step(value, call());
        } else {
            return;
        }
    }
}

Step Parser::attribute() {
    expect_op(".");
    Step step{StepKind::attribute, peek().line, "", {}};
    if (peek().is(TokenKind::integer)) {
        step.kind = StepKind::item;
        step.arguments.push_back({"", {integer()}});
    } else {
        step.name = take_name();
    }
    return step;
}

Step Parser::subscript() {
    Step step{StepKind::item, peek().line, "", {}};
    expect_op("[");
    const auto is_part = [&] { return !peek().is_op(":") && !peek().is_op("]"); };
    Argument first;
    if (is_part()) first.value.push_back(tuple(&Parser::expression));
    step.arguments.push_back(std::move(first));
    while (step.arguments.size() < 3 && skip_op(":")) {
        step.kind = StepKind::slice;
        Argument part;
        if (is_part()) part.value.push_back(expression());
        step.arguments.push_back(std::move(part));
    }
    if (step.kind == StepKind::slice) step.arguments.resize(3);
    if (step.kind == StepKind::item && step.arguments[0].value.empty()) fail_here();
    expect_op("]");
    return step;
}

// value, name=value, *values or **named, in this order, except that names may follow *values.
Argument Parser::argument(const std::vector<Argument>& before) {
    Argument argument;
    const auto follows = [&](Spread spread) {
        return std::any_of(before.begin(), before.end(),
                           [&](const Argument& one) { return one.spread == spread; });
    };
    if (follows(Spread::entries)) fail("argument after **");
    if (skip_op("**")) {
        argument.spread = Spread::entries;
    } else if (skip_op("*")) {
        if (follows(Spread::items)) fail("* twice in a call");
        argument.spread = Spread::items;
    } else if (peek().is(TokenKind::name) && peek(1).is_op("=")) {
        argument.name = take_name();
        take();
    } else if (follows(Spread::items) || (!before.empty() && !before.back().name.empty())) {
        fail("argument by position after one by name");
    }
    argument.value.push_back(expression());
    return argument;
}

std::vector<Argument> Parser::arguments() {
    std::vector<Argument> all;
    expect_op("(");
    while (!peek().is_op(")")) {
        if (!all.empty()) expect_op(",");
        if (peek().is_op(")")) break;
        all.push_back(argument(all));
    }
    expect_op(")");
    return all;
}

Step Parser::call() {
    const uint32_t line = peek().line;
    return {StepKind::call, line, "", arguments()};
}

Step Parser::filter() {
    expect_op("|");
    Step step{StepKind::filter, peek().line, take_name(), {}};
    while (skip_op(".")) step.name += "." + take_name();
    if (peek().is_op("(")) step.arguments = arguments();
    return step;
}

// An argument may stand without parentheses: x is divisibleby 3.
Step Parser::test() {
    take();
    Step step{StepKind::test, peek().line, "", {}};
    if (skip_name("not")) step.kind = StepKind::test_not;
    step.name = take_name();
    const Token& next = peek();
    const bool is_word = next.is(TokenKind::name);
    const bool ends = next.is_name("else") || next.is_name("or") || next.is_name("and") ||
                      next.is_name("not") || next.is_name("if") || next.is_name("in");
    if (next.is_name("is")) fail("tests in a chain");
    if (next.is_op("(")) {
        step.arguments = arguments();
    } else if ((is_word && !ends) || next.is(TokenKind::string) || next.is(TokenKind::integer) ||
               next.is(TokenKind::real) || next.is_op("[") || next.is_op("{")) {
        Expression value = primary();
        unfiltered_steps(value);
        step.arguments.push_back({"", {std::move(value)}});
    }
    return step;
}

// A name, namespace.name, or several with commas.
Expression Parser::target(bool tuples) {
    const Level level(*this);
    const auto one = [&] {
        if (skip_op("(")) {
            Expression inside = target(true);
            expect_op(")");
            return inside;
        }
        Expression value = name_or_constant();
        if (value.kind != ExpressionKind::name) fail("cannot set '" + value.text + "'");
        if (peek().is_op("."))
            add_step(value, attribute());
        else
            note_set(value.text);
        if (!value.steps.empty() && value.steps[0].kind != StepKind::attribute) fail_here();
        return value;
    };
    Expression first = one();
    if (!tuples || !peek().is_op(",")) return first;
    Expression all = made(ExpressionKind::tuple);
    all.parts.push_back(std::move(first));
    while (skip_op(",") && (peek().is(TokenKind::name) || peek().is_op("("))) {
        if (peek().is_name("in")) break;
        all.parts.push_back(one());
    }
    return all;
}

}  // namespace aerie::jinja
