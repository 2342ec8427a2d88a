// Parses macros and call blocks.
#include <algorithm>
#include <utility>

#include "jinja/parser.h"

namespace aerie::jinja {
namespace {

std::string_view name_of(bool MacroNames::*member) {
    return member == &MacroNames::varargs  ? "varargs"
           : member == &MacroNames::kwargs ? "kwargs"
                                           : "caller";
}

}  // namespace

void Parser::note_read(std::string_view name) {
    for (OpenMacro& macro : open_macros_) {
        for (const auto member : {&MacroNames::varargs, &MacroNames::kwargs, &MacroNames::caller}) {
            if (name == name_of(member) && !(macro.set.*member)) macro.read.*member = true;
        }
    }
}

void Parser::note_set(std::string_view name) {
    for (OpenMacro& macro : open_macros_) {
        for (const auto member : {&MacroNames::varargs, &MacroNames::kwargs, &MacroNames::caller}) {
            if (name == name_of(member)) macro.set.*member = true;
        }
    }
}

// Parses the parameters of a macro, in parentheses.
void Parser::signature(Statement& macro) {
    expect_op("(");
    while (!peek().is_op(")")) {
        if (!macro.names.empty()) expect_op(",");
        if (peek().is_op(")")) break;
        note_set(peek().text);
        macro.names.push_back(take_name());
        if (skip_op("=")) {
            macro.expressions.push_back(expression());
        } else if (!macro.expressions.empty()) {
            fail("parameter without a default after one with a default");
        }
    }
    expect_op(")");
}

void Parser::macro_body(Statement& macro, std::string_view end) {
    open_macros_.emplace_back();
    const size_t loops = std::exchange(loops_, 0);
    macro.bodies.push_back(block(end));
    loops_ = loops;
    macro.special = open_macros_.back().read;
    open_macros_.pop_back();
    const auto place = [&](std::string_view name) {
        return size_t(std::find(macro.names.begin(), macro.names.end(), name) -
                      macro.names.begin());
    };
    // A parameter with a special name is a parameter like any other.
    const size_t count = macro.names.size();
    if (place("varargs") < count) macro.special.varargs = false;
    if (place("kwargs") < count) macro.special.kwargs = false;
    if (macro.special.caller && place("caller") < count - macro.expressions.size()) {
        fail("parameter 'caller' without a default");
    }
}

Statement Parser::macro() {
    Statement made{.kind = StatementKind::macro};
    take();
    made.text = take_name();
    signature(made);
    macro_body(made, "endmacro");
    return made;
}

// {% call(parameters) macro(arguments) %}: the block becomes the macro `caller` of that call.
Statement Parser::call_block() {
    Statement made{.kind = StatementKind::call}, caller{.kind = StatementKind::macro};
    caller.line = peek().line;
    take();
    if (peek().is_op("(")) signature(caller);
    Expression call = expression();
    if (call.kind != ExpressionKind::steps || call.steps.back().kind != StepKind::call) {
        fail("a call block needs a call");
    }
    for (const Argument& argument : call.steps.back().arguments) {
        if (argument.name == "caller") fail("argument 'caller' of a call block");
    }
    macro_body(caller, "endcall");
    made.expressions.push_back(std::move(call));
    made.bodies.emplace_back().push_back(std::move(caller));
    return made;
}

}  // namespace aerie::jinja
