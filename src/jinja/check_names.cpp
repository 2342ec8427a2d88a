// The filters and tests that a template names must exist before it runs, as when jinja2 compiles a
// template. A name in an `if` may be missing, because the template may ask first whether it exists.
#include <algorithm>
#include <array>

#include "core/utf8.h"
#include "jinja/builtins.h"
#include "jinja/lexer.h"
#include "jinja/syntax.h"

namespace aerie::jinja {
namespace {

class NameCheck {
  public:
    explicit NameCheck(const std::string& file) : file_(file) {}

    // `may_ask`: the body is that of an `if`, and no other block lies between.
    void body(const Body& body, bool may_ask) const {
        for (const Statement& statement : body) check(statement, may_ask);
    }

  private:
    void check(const Statement& statement, bool may_ask) const;
    void loop(const Statement& statement, bool may_ask) const;
    void expression(const Expression& expression, bool may_ask) const;
    void expressions(const std::vector<Expression>& all, bool may_ask) const {
        for (const Expression& one : all) expression(one, may_ask);
    }
    void bodies(const std::vector<Body>& all, bool may_ask) const {
        for (const Body& one : all) body(one, may_ask);
    }
    void step(const Step& step, bool may_ask) const;

    const std::string& file_;
};

// jinja2's filters that are not implemented. A template that never reaches them works.
bool is_missing(std::string_view filter) {
    constexpr std::array<std::string_view, 6> kMissing = {"pprint", "random",   "urlencode",
                                                          "urlize", "wordwrap", "xmlattr"};
    return std::find(kMissing.begin(), kMissing.end(), filter) != kMissing.end();
}

void NameCheck::step(const Step& step, bool may_ask) const {
    const bool is_test = step.kind == StepKind::test || step.kind == StepKind::test_not;
    if (step.kind == StepKind::filter && !may_ask && !find_filter(step.name) &&
        !is_missing(step.name)) {
        fail_at(file_, step.line, "unknown filter " + in_quotes(step.name));
    }
    if (is_test && !may_ask && !find_test(step.name)) {
        fail_at(file_, step.line, "unknown test " + in_quotes(step.name));
    }
    for (const Argument& argument : step.arguments) expressions(argument.value, may_ask);
}

void NameCheck::expression(const Expression& expression, bool may_ask) const {
    const bool inside = may_ask || expression.kind == ExpressionKind::conditional;
    expressions(expression.parts, inside);
    for (const Step& one : expression.steps) step(one, inside);
}

// The expressions of a loop are the target, the items and the condition.
void NameCheck::loop(const Statement& statement, bool may_ask) const {
    expression(statement.expressions[1], may_ask);
    if (statement.expressions.size() > 2) expression(statement.expressions[2], false);
    bodies(statement.bodies, false);
}

void NameCheck::check(const Statement& statement, bool may_ask) const {
    switch (statement.kind) {
        case StatementKind::branch:
            expressions(statement.expressions, true);
            return bodies(statement.bodies, true);
        case StatementKind::for_loop:
            return loop(statement, may_ask);
        case StatementKind::set_block:
        case StatementKind::macro:
        case StatementKind::filter:
            expressions(statement.expressions, false);
            return bodies(statement.bodies, false);
        default:
            expressions(statement.expressions, may_ask);
            return bodies(statement.bodies, false);
    }
}

}  // namespace

void check_names(const Body& body, const std::string& file) {
    NameCheck(file).body(body, false);
}

}  // namespace aerie::jinja
