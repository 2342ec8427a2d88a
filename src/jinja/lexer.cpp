// Cuts a template into tokens, with trim_blocks and lstrip_blocks as transformers sets them.
#include "jinja/lexer.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/utf8.h"
#include "jinja/characters.h"

namespace aerie::jinja {
namespace {

constexpr size_t kMaxTokens = 100'000;
constexpr size_t kMaxName = 200;  // so that comparing two names is one step

class Lexer {
  public:
    Lexer(std::string_view source, const std::string& file) : source_(source), file_(file) {}
    std::vector<Token> run();

  private:
    [[noreturn]] void fail(const std::string& why) const { fail_at(file_, line_, why); }
    void add(TokenKind kind, std::string_view text);
    std::string_view rest() const { return source_.substr(at_); }
    bool skip(std::string_view expected);
    void skip_spaces();
    void move_to(size_t at);  // counts the lines

    void data(size_t end, char kind, char sign);
    bool raw();
    void comment();
    void tag(char kind);
    bool tag_end(char kind);
    void tag_token();
    void number();
    void string();
    void op();

    std::string_view source_;
    const std::string& file_;
    std::vector<Token> tokens_;
    std::string open_;  // brackets that are open in the current tag
    size_t at_ = 0;
    uint32_t line_ = 1;
    bool starts_line_ = true;  // only removed text lies between a line break and at_
};

void Lexer::add(TokenKind kind, std::string_view text) {
    if (tokens_.size() == kMaxTokens) fail("more than " + std::to_string(kMaxTokens) + " tokens");
    tokens_.push_back({kind, line_, text});
}

void Lexer::move_to(size_t at) {
    const std::string_view passed = source_.substr(at_, at - at_);
    line_ += uint32_t(std::count(passed.begin(), passed.end(), '\n'));
    at_ = at;
}

bool Lexer::skip(std::string_view expected) {
    if (!rest().starts_with(expected)) return false;
    move_to(at_ + expected.size());
    return true;
}

void Lexer::skip_spaces() {
    size_t at = at_;
    while (at < source_.size() && is_space(first_char(source_.substr(at)))) {
        at += char_size(source_[at]);
    }
    move_to(at);
}

// Adds the text before a tag of this kind and sign ('-', '+' or none), without what the tag cuts
// off.
void Lexer::data(size_t end, char kind, char sign) {
    size_t last = end;
    if (sign == '-') {
        while (last > at_ && is_space(last_char(source_.substr(at_, last - at_)))) {
            do --last;
            while ((source_[last] & 0xC0) == 0x80);
        }
    } else if (sign != '+' && kind != '{') {
        const std::string_view text = source_.substr(at_, end - at_);
        const size_t line = text.rfind('\n') + 1;  // 0 if there is none
        size_t blank = line;
        while (blank < text.size() && is_space(first_char(text.substr(blank)))) {
            blank += char_size(text[blank]);
        }
        if ((line > 0 || starts_line_) && blank == text.size()) last = at_ + line;
    }
    if (last > at_) add(TokenKind::data, source_.substr(at_, last - at_));
    move_to(end);
}

// Reads {% raw %} ... {% endraw %}, if it is at this place. at_ is behind the sign of the first
// tag.
bool Lexer::raw() {
    const size_t begin = at_;
    const uint32_t line = line_;
    const auto back = [&] {
        at_ = begin;
        line_ = line;
        return false;
    };
    skip_spaces();
    if (!skip("raw")) return back();
    skip_spaces();
    const bool strips = skip("-%}");
    if (!strips && !skip("%}")) return back();
    if (strips) skip_spaces();
    starts_line_ = source_[at_ - 1] == '\n';
    for (size_t from = at_;; from += 2) {
        from = source_.find("{%", from);
        if (from == source_.npos) fail("raw block that does not end");
        const char after = source_.substr(from + 2).empty() ? '\0' : source_[from + 2];
        const char sign = after == '-' || after == '+' ? after : '\0';
        Lexer ahead(source_, file_);
        ahead.at_ = from + 2 + (sign ? 1 : 0);
        ahead.skip_spaces();
        if (!ahead.skip("endraw")) continue;
        ahead.skip_spaces();
        if (!ahead.tag_end('%')) continue;
        data(from, '%', sign);
        move_to(ahead.at_);
        starts_line_ = source_[at_ - 1] == '\n';
        return true;
    }
}

void Lexer::comment() {
    const size_t end = source_.find("#}", at_);
    if (end == source_.npos) fail("comment that does not end");
    const char before = end > at_ ? source_[end - 1] : '\0';
    move_to(end + 2);
    if (before == '-') {
        skip_spaces();
    } else if (before != '+') {
        skip("\n");
    }
    starts_line_ = source_[at_ - 1] == '\n';
}

bool Lexer::tag_end(char kind) {
    const std::string_view end = kind == '%' ? "%}" : "}}";
    const size_t begin = at_;
    if (skip("-")) {
        if (skip(end)) {
            skip_spaces();
            return true;
        }
    } else if (kind == '%' && skip("+")) {
        if (skip(end)) return true;
    } else if (skip(end)) {
        if (kind == '%') skip("\n");
        return true;
    }
    at_ = begin;  // neither sign is a line break
    return false;
}

void Lexer::number() {
    const bool is_member = at_ > 0 && source_[at_ - 1] == '.';
    const NumberText number = number_text(rest(), is_member);
    if (number.size == 0) fail("number without digits");
    add(number.is_real ? TokenKind::real : TokenKind::integer, rest().substr(0, number.size));
    move_to(at_ + number.size);
}

void Lexer::string() {
    const char quote = source_[at_];
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("string that does not end");
    add(TokenKind::string, source_.substr(at_ + 1, end - at_ - 1));
    move_to(end + 1);
}

void Lexer::op() {
    constexpr std::array<std::string_view, 26> kOps = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view known : kOps) {
        if (!rest().starts_with(known)) continue;
        const char c = known[0];
        if (c == '(' || c == '[' || c == '{') open_ += c;
        if (c == ')' || c == ']' || c == '}') {
            const char opening = c == ')' ? '(' : c == ']' ? '[' : '{';
            if (open_.empty() || open_.back() != opening)
                fail("unexpected '" + std::string(known) + "'");
            open_.pop_back();
        }
        add(TokenKind::op, rest().substr(0, known.size()));
        return move_to(at_ + known.size());
    }
    fail("unexpected character " + in_quotes(rest().substr(0, char_size(source_[at_]))));
}

void Lexer::tag_token() {
    const char c = source_[at_];
    if (c >= '0' && c <= '9') return number();
    if (c == '\'' || c == '"') return string();
    size_t end = at_;
    while (end < source_.size() && is_word(first_char(source_.substr(end)))) {
        end += char_size(source_[end]);
    }
    if (end == at_) return op();
    if (end - at_ > kMaxName) fail("name of more than " + std::to_string(kMaxName) + " bytes");
    add(TokenKind::name, source_.substr(at_, end - at_));
    move_to(end);
}

void Lexer::tag(char kind) {
    open_.clear();
    add(kind == '%' ? TokenKind::block_begin : TokenKind::print_begin, {});
    const uint32_t line = line_;
    for (;;) {
        skip_spaces();
        if (at_ == source_.size()) fail_at(file_, line, "tag that does not end");
        if (open_.empty() && tag_end(kind)) break;
        tag_token();
    }
    add(kind == '%' ? TokenKind::block_end : TokenKind::print_end, {});
    starts_line_ = source_[at_ - 1] == '\n';
}

std::vector<Token> Lexer::run() {
    while (at_ < source_.size()) {
        size_t open = source_.find('{', at_);
        while (open != source_.npos &&
               (open + 1 == source_.size() ||
                std::string_view("{%#").find(source_[open + 1]) == std::string_view::npos)) {
            open = source_.find('{', open + 1);
        }
        if (open == source_.npos) {
            data(source_.size(), '{', '\0');
            break;
        }
        const char kind = source_[open + 1];
        const char after = open + 2 < source_.size() ? source_[open + 2] : '\0';
        const char sign = after == '-' || after == '+' ? after : '\0';
        data(open, kind, sign);
        move_to(open + 2 + (sign ? 1 : 0));
        if (kind == '#') {
            comment();
        } else if (kind == '{' || !raw()) {
            tag(kind);
        }
    }
    add(TokenKind::end, {});
    return std::move(tokens_);
}

}  // namespace

std::string normalised(std::string_view source) {
    std::string text;
    for (size_t i = 0; i < source.size(); ++i) {
        if (source[i] != '\r') {
            text += source[i];
        } else if (!source.substr(i + 1).starts_with('\n')) {
            text += '\n';
        }
    }
    if (text.ends_with('\n')) text.pop_back();
    return text;
}

std::vector<Token> tokens_of(std::string_view source, const std::string& file) {
    return Lexer(source, file).run();
}

void fail_at(const std::string& file, size_t line, const std::string& why) {
    throw Error(file + ":" + std::to_string(line) + ": " + why);
}

}  // namespace aerie::jinja
