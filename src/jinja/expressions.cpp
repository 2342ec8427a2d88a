// Parses expressions, with the precedence of Jinja's operators.
#include <array>
#include <charconv>
#include <cmath>

#include "core/utf8.h"
#include "jinja/parser.h"
#include "jinja/workspace.h"

namespace aerie::jinja {

Expression Parser::expression() {
    const Level level(*this);
    Expression value = condition();
    if (!skip_name("if")) return value;
    Expression chosen = made(ExpressionKind::conditional);
    chosen.parts.push_back(std::move(value));
    chosen.parts.push_back(condition());
    if (skip_name("else")) chosen.parts.push_back(expression());
    return chosen;
}

Expression Parser::condition() {
    return chained(ExpressionKind::logical_or, "or", &Parser::conjunction);
}

Expression Parser::conjunction() {
    return chained(ExpressionKind::logical_and, "and", &Parser::negation);
}

Expression Parser::chained(ExpressionKind kind, std::string_view word,
                           Expression (Parser::*item)()) {
    Expression first = (this->*item)();
    if (!peek().is_name(word)) return first;
    Expression all = made(kind);
    all.parts.push_back(std::move(first));
    while (skip_name(word)) all.parts.push_back((this->*item)());
    return all;
}

Expression Parser::negation() {
    if (!peek().is_name("not")) return comparison();
    const Level level(*this);
    Expression value = made(ExpressionKind::logical_not);
    take();
    value.parts.push_back(negation());
    return value;
}

bool Parser::take_comparison(std::vector<std::string>& ops) {
    constexpr std::array<std::string_view, 6> kOps = {"==", "!=", "<", "<=", ">", ">="};
    for (const std::string_view op : kOps) {
        if (!skip_op(op)) continue;
        ops.emplace_back(op);
        return true;
    }
    if (skip_name("in")) {
        ops.emplace_back("in");
        return true;
    }
    if (!peek().is_name("not") || !peek(1).is_name("in")) return false;
    take();
    take();
    ops.emplace_back("not in");
    return true;
}

Expression Parser::comparison() {
    Expression all = made(ExpressionKind::comparison);
    all.parts.push_back(sum());
    while (take_comparison(all.ops)) all.parts.push_back(sum());
    if (!all.ops.empty()) return all;
    return Expression(std::move(all.parts[0]));
}

Expression Parser::arithmetic(std::initializer_list<std::string_view> ops,
                              Expression (Parser::*item)()) {
    Expression all = made(ExpressionKind::chain);
    all.parts.push_back((this->*item)());
    for (bool more = true; more;) {
        more = false;
        for (const std::string_view op : ops) {
            if (!skip_op(op)) continue;
            all.ops.emplace_back(op);
            all.parts.push_back((this->*item)());
            more = true;
            break;
        }
    }
    if (!all.ops.empty()) return all;
    return Expression(std::move(all.parts[0]));
}

Expression Parser::sum() {
    return arithmetic({"+", "-"}, &Parser::concat);
}

Expression Parser::concat() {
    Expression first = product();
    if (!peek().is_op("~")) return first;
    Expression all = made(ExpressionKind::concat);
    all.parts.push_back(std::move(first));
    while (skip_op("~")) all.parts.push_back(product());
    return all;
}

Expression Parser::product() {
    return arithmetic({"*", "/", "//", "%"}, &Parser::power);
}

Expression Parser::power() {
    return arithmetic({"**"}, &Parser::operand);
}

Expression Parser::operand() {
    Expression value = unary();
    filter_steps(value);
    return value;
}

// A sign binds less tightly than .name and [item], and more tightly than |filter.
Expression Parser::unary() {
    if (!peek().is_op("-") && !peek().is_op("+")) {
        Expression value = primary();
        unfiltered_steps(value);
        return value;
    }
    const Level level(*this);
    Expression value =
        made(take().text == "-" ? ExpressionKind::negative : ExpressionKind::positive);
    value.parts.push_back(unary());
    return value;
}

Expression Parser::primary() {
    switch (peek().kind) {
        case TokenKind::name:
            note_read(peek().text);
            return name_or_constant();
        case TokenKind::string:
            return string();
        case TokenKind::integer:
            return integer();
        case TokenKind::real:
            return real();
        default:
            break;
    }
    if (peek().is_op("(")) return parenthesised();
    if (peek().is_op("[")) return list();
    if (peek().is_op("{")) return dict();
    fail_here();
}

Expression Parser::name_or_constant() {
    Expression value = made(ExpressionKind::name);
    value.text = take_name();
    if (value.text == "none" || value.text == "None") value.kind = ExpressionKind::none;
    for (const std::string_view word : {"true", "True", "false", "False"}) {
        if (value.text != word) continue;
        value.kind = ExpressionKind::boolean;
        value.integer = word[0] == 't' || word[0] == 'T';
    }
    return value;
}

Expression Parser::string() {
    Expression value = made(ExpressionKind::string);
    while (peek().is(TokenKind::string)) value.text += unescaped(take(), file_);
    return value;
}

Expression Parser::integer() {
    Expression value = made(ExpressionKind::integer);
    std::string digits;
    for (const char c : peek().text) {
        if (c != '_') digits += c;
    }
    int base = 10;
    if (digits.size() > 2 && digits[0] == '0' && (digits[1] < '0' || digits[1] > '9')) {
        const char letter = char(digits[1] | 0x20);
        base = letter == 'x' ? 16 : letter == 'o' ? 8 : 2;
        digits.erase(0, 2);
    }
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value.integer, base);
    if (error != std::errc() || stop != end) fail("number of more than 64 bits");
    take();
    return value;
}

Expression Parser::real() {
    Expression value = made(ExpressionKind::real);
    std::string digits;
    for (const char c : peek().text) {
        if (c != '_') digits += c;
    }
    const char* end = digits.data() + digits.size();
    if (std::from_chars(digits.data(), end, value.real).ec != std::errc()) {
        value.real = digits.find('-') == digits.npos ? HUGE_VAL : 0;  // too large, too small
    }
    take();
    return value;
}

// A value, or a tuple if there are commas.
Expression Parser::tuple(Expression (Parser::*item)()) {
    const auto ends = [&] {
        return peek().is_op(")") || peek().is_op("]") || peek().is_op("=") ||
               peek().is(TokenKind::print_end) || peek().is(TokenKind::block_end);
    };
    Expression first = (this->*item)();
    if (!peek().is_op(",")) return first;
    Expression all = made(ExpressionKind::tuple);
    all.parts.push_back(std::move(first));
    while (skip_op(",") && !ends()) all.parts.push_back((this->*item)());
    return all;
}

Expression Parser::parenthesised() {
    expect_op("(");
    Expression value = made(ExpressionKind::tuple);
    if (!peek().is_op(")")) value = tuple(&Parser::expression);
    expect_op(")");
    return value;
}

Expression Parser::list() {
    Expression value = made(ExpressionKind::list);
    expect_op("[");
    while (!peek().is_op("]")) {
        if (!value.parts.empty()) expect_op(",");
        if (peek().is_op("]")) break;
        value.parts.push_back(expression());
    }
    expect_op("]");
    return value;
}

Expression Parser::dict() {
    Expression value = made(ExpressionKind::dict);
    expect_op("{");
    while (!peek().is_op("}")) {
        if (!value.parts.empty()) expect_op(",");
        if (peek().is_op("}")) break;
        value.parts.push_back(expression());
        expect_op(":");
        value.parts.push_back(expression());
    }
    expect_op("}");
    return value;
}

}  // namespace aerie::jinja
