// Parses the tags of a template.
#include <algorithm>

#include "core/utf8.h"
#include "jinja/parser.h"
#include "jinja/workspace.h"

namespace aerie::jinja {

Parser::Level::Level(Parser& parser) : parser_(parser) {
    if (parser_.depth_ == kMaxDepth) {
        parser_.fail("nested deeper than " + std::to_string(kMaxDepth));
    }
    ++parser_.depth_;
}

const Token& Parser::peek(size_t ahead) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

void Parser::fail_here() const {
    switch (peek().kind) {
        case TokenKind::end:
            fail("the template ends too early");
        case TokenKind::print_end:
        case TokenKind::block_end:
            fail("the tag ends too early");
        default:
            fail("unexpected " + in_quotes(peek().text));
    }
}

bool Parser::skip_op(std::string_view op) {
    if (!peek().is_op(op)) return false;
    take();
    return true;
}

bool Parser::skip_name(std::string_view name) {
    if (!peek().is_name(name)) return false;
    take();
    return true;
}

void Parser::expect_op(std::string_view op) {
    if (!skip_op(op)) fail_here();
}

void Parser::expect(TokenKind kind) {
    if (!peek().is(kind)) fail_here();
    take();
}

std::string Parser::take_name() {
    if (!peek().is(TokenKind::name)) fail_here();
    return std::string(take().text);
}

Expression Parser::made(ExpressionKind kind) const {
    Expression expression;
    expression.kind = kind;
    expression.line = peek().line;
    return expression;
}

Body Parser::parse_template() {
    Body all = body({});
    if (!peek().is(TokenKind::end)) fail("unexpected tag " + in_quotes(peek().text));
    return all;
}

// Parses up to a tag with one of these names, of which `{%` is taken, or up to the end.
Body Parser::body(std::initializer_list<std::string_view> ends) {
    const Level level(*this);
    Body all;
    for (;;) {
        Statement one;
        one.line = peek().line;
        switch (peek().kind) {
            case TokenKind::data:
                one.text = std::string(take().text);
                break;
            case TokenKind::print_begin:
                take();
                one.kind = StatementKind::print;
                one.expressions.push_back(tuple(&Parser::expression));
                expect(TokenKind::print_end);
                break;
            case TokenKind::block_begin: {
                const Token& name = peek(1);
                const bool is_end = name.is(TokenKind::name) &&
                                    std::find(ends.begin(), ends.end(), name.text) != ends.end();
                take();
                if (is_end) return all;
                one = statement();
                break;
            }
            default:
                if (ends.size() > 0) {
                    fail("no tag " + in_quotes(*(ends.end() - 1)) + " before the end");
                }
                return all;
        }
        all.push_back(std::move(one));
    }
}

Statement Parser::statement() {
    struct Tag {
        std::string_view name;
        Statement (Parser::*parse)();
    };
    static constexpr Tag kTags[] = {{"for", &Parser::for_loop},
                                    {"if", &Parser::branch},
                                    {"set", &Parser::set},
                                    {"macro", &Parser::macro},
                                    {"call", &Parser::call_block},
                                    {"filter", &Parser::filter_block},
                                    {"with", &Parser::with},
                                    {"generation", &Parser::generation},
                                    {"break", &Parser::loop_control},
                                    {"continue", &Parser::loop_control}};
    const uint32_t line = peek().line;
    for (const Tag& tag : kTags) {
        if (!peek().is_name(tag.name)) continue;
        Statement made = (this->*tag.parse)();
        made.line = line;
        return made;
    }
    if (!peek().is(TokenKind::name)) fail_here();
    fail("unknown tag " + in_quotes(peek().text));
}

Body Parser::block(std::string_view end) {
    expect(TokenKind::block_end);
    Body inside = body({end});
    take();
    expect(TokenKind::block_end);
    return inside;
}

Statement Parser::for_loop() {
    Statement made{.kind = StatementKind::for_loop};
    take();
    made.expressions.push_back(target(true));
    if (!skip_name("in")) fail_here();
    made.expressions.push_back(tuple(&Parser::condition));
    if (skip_name("if")) made.expressions.push_back(expression());
    made.recursive = skip_name("recursive");
    expect(TokenKind::block_end);
    ++loops_;
    made.bodies.push_back(body({"else", "endfor"}));
    --loops_;
    if (take().text == "else") {
        made.bodies.push_back(block("endfor"));
        return made;
    }
    expect(TokenKind::block_end);
    return made;
}

Statement Parser::branch() {
    Statement made{.kind = StatementKind::branch};
    do {
        take();
        made.expressions.push_back(tuple(&Parser::condition));
        expect(TokenKind::block_end);
        made.bodies.push_back(body({"elif", "else", "endif"}));
    } while (peek().is_name("elif"));
    if (take().text == "else") {
        made.bodies.push_back(block("endif"));
        return made;
    }
    expect(TokenKind::block_end);
    return made;
}

Statement Parser::set() {
    Statement made{.kind = StatementKind::set};
    take();
    made.expressions.push_back(target(true));
    if (skip_op("=")) {
        made.expressions.push_back(tuple(&Parser::expression));
        expect(TokenKind::block_end);
        return made;
    }
    made.kind = StatementKind::set_block;
    Expression filters = this->made(ExpressionKind::steps);
    while (peek().is_op("|")) filters.steps.push_back(filter());
    made.expressions.push_back(std::move(filters));
    made.bodies.push_back(block("endset"));
    return made;
}

Statement Parser::filter_block() {
    Statement made{.kind = StatementKind::filter};
    Expression filters = this->made(ExpressionKind::steps);
    take();
    Step first{StepKind::filter, peek().line, take_name(), {}};
    if (peek().is_op("(")) first.arguments = arguments();
    filters.steps.push_back(std::move(first));
    while (peek().is_op("|")) filters.steps.push_back(filter());
    made.expressions.push_back(std::move(filters));
    made.bodies.push_back(block("endfilter"));
    return made;
}

Statement Parser::with() {
    Statement made{.kind = StatementKind::with};
    take();
    while (!peek().is(TokenKind::block_end)) {
        if (!made.expressions.empty()) expect_op(",");
        made.expressions.push_back(target(false));
        expect_op("=");
        made.expressions.push_back(expression());
    }
    made.bodies.push_back(block("endwith"));
    return made;
}

Statement Parser::generation() {
    Statement made{.kind = StatementKind::plain};
    take();
    made.bodies.push_back(block("endgeneration"));
    return made;
}

Statement Parser::loop_control() {
    if (loops_ == 0) fail(in_quotes(peek().text) + " outside a loop");
    Statement made{.kind = peek().is_name("break") ? StatementKind::stop : StatementKind::next};
    take();
    expect(TokenKind::block_end);
    return made;
}

Body parse(std::string_view source, const std::string& file) {
    return Parser(source, file).parse_template();
}

}  // namespace aerie::jinja
