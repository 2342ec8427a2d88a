// Recursive descent over the tokens of a template. expressions.cpp parses expressions, steps.cpp
// the steps behind a value, statements.cpp the tags, macros.cpp the tags of macros.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jinja/lexer.h"
#include "jinja/syntax.h"

namespace aerie::jinja {

class Parser {
  public:
    Parser(std::string_view source, const std::string& file)
        : tokens_(tokens_of(source, file)), file_(file) {}

    Body parse_template();

  private:
    // Lives as long as one level of nesting; fails beyond kMaxDepth.
    class Level {
      public:
        explicit Level(Parser& parser);
        ~Level() { --parser_.depth_; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

      private:
        Parser& parser_;
    };

    [[noreturn]] void fail(const std::string& why) const { fail_at(file_, peek().line, why); }
    [[noreturn]] void fail_here() const;  // names the unexpected token
    const Token& peek(size_t ahead = 0) const;
    const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
    bool skip_op(std::string_view op);
    bool skip_name(std::string_view name);
    void expect_op(std::string_view op);
    void expect(TokenKind kind);
    std::string take_name();
    Expression made(ExpressionKind kind) const;

    // A macro that is being parsed, and which special names it has read or set so far.
    struct OpenMacro {
        MacroNames read, set;
    };
    void note_read(std::string_view name);
    void note_set(std::string_view name);

    // expressions.cpp
    Expression expression();  // a if b else c
    Expression condition();   // without the conditional `if`
    Expression tuple(Expression (Parser::*item)());
    Expression chained(ExpressionKind kind, std::string_view word, Expression (Parser::*item)());
    Expression conjunction();
    Expression negation();
    Expression comparison();
    bool take_comparison(std::vector<std::string>& ops);
    Expression arithmetic(std::initializer_list<std::string_view> ops,
                          Expression (Parser::*item)());
    Expression sum();
    Expression concat();
    Expression product();
    Expression power();
    Expression operand();  // with filters
    Expression unary();
    Expression primary();
    Expression name_or_constant();
    Expression integer();
    Expression real();
    Expression string();
    Expression parenthesised();
    Expression list();
    Expression dict();
    void unfiltered_steps(Expression& value);
    void filter_steps(Expression& value);
    Step attribute();
    Step subscript();
    Step call();
    Step filter();
    Step test();
    std::vector<Argument> arguments();
    Argument argument(const std::vector<Argument>& before);
    Expression target(bool tuples);

    // statements.cpp
    Body body(std::initializer_list<std::string_view> ends);
    Statement statement();
    Statement for_loop();
    Statement branch();
    Statement set();
    Statement macro();
    Statement call_block();
    void signature(Statement& macro);
    void macro_body(Statement& macro, std::string_view end);
    Statement filter_block();
    Statement with();
    Statement generation();
    Statement loop_control();
    Body block(std::string_view end);  // from the end of the first tag to the end of the last one

    std::vector<Token> tokens_;
    const std::string& file_;
    size_t at_ = 0;
    size_t depth_ = 0;
    size_t loops_ = 0;  // loops around this place, inside the same macro
    std::vector<OpenMacro> open_macros_;
};

// Replaces escapes such as "\n" in a string as written. Throws Error for one that is no character.
std::string unescaped(const Token& token, const std::string& file);

}  // namespace aerie::jinja
