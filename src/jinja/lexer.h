// A template's text as tokens. White space around tags is cut here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace aerie::jinja {

enum class TokenKind : uint8_t {
    data,         // text between tags
    print_begin,  // {{
    print_end,
    block_begin,  // {%
    block_end,
    name,
    string,  // as written, without its quotes
    integer,
    real,
    op,
    end
};

struct Token {
    TokenKind kind = TokenKind::end;
    uint32_t line = 0;
    std::string_view text;  // points into the template

    bool is(TokenKind other) const { return kind == other; }
    bool is_op(std::string_view op) const { return kind == TokenKind::op && text == op; }
    bool is_name(std::string_view name) const { return kind == TokenKind::name && text == name; }
};

// The template with \n for all kinds of line breaks, and without the last line break.
std::string normalised(std::string_view source);

// The last token is `end`; the tokens point into `source`. Throws Error with file, line and reason.
std::vector<Token> tokens_of(std::string_view source, const std::string& file);

// A number at the beginning of a text, in Python's syntax.
struct NumberText {
    size_t size = 0;  // bytes; 0: a prefix such as 0x without digits
    bool is_real = false;
};
// `is_member`: the number follows a point, so it ends at the next one. The text begins with a
// digit.
NumberText number_text(std::string_view text, bool is_member);

[[noreturn]] void fail_at(const std::string& file, size_t line, const std::string& why);

}  // namespace aerie::jinja
