// A walk over the pattern that copies what both engines read alike, rewrites what they read
// differently, and refuses the rest.
#include "text/regex_syntax.h"

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {
namespace {

constexpr size_t kMaxPatternBytes = 16 << 10;

// Insides of character classes.
constexpr std::string_view kWhiteSpace =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view kNotSpace =
    R"(\x{0}-\x{8}\x{E}-\x{1F}\x{21}-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF})"
    R"(\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";
constexpr std::string_view kWord =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169})"
    R"(\x{1F170}-\x{1F189})";

class Translator {
  public:
    explicit Translator(std::string_view pattern) : rest_(pattern) {}

    std::string run();

  private:
    [[noreturn]] void refuse(std::string_view what) const {
        throw Error("a pattern has " + in_quotes(what) + ", which is not supported",
                    Cause::unsupported);
    }
    bool take(std::string_view text) {
        if (!rest_.starts_with(text)) return false;
        rest_.remove_prefix(text.size());
        return true;
    }
    void group();
    void braces();
    void escape();
    std::string char_class();
    void escape_in_class(std::string& out);
    bool common_escape(std::string& out);
    std::string hex_escape(size_t digits);

    std::string_view rest_;
    std::string out_;
    bool is_nested_ = false;  // in a class inside another class
};

std::string Translator::run() {
    if (take("(?i)")) out_ += "(?i)";
    while (!rest_.empty()) {
        const char next = rest_.front();
        if (next == '(') {
            group();
        } else if (next == '{') {
            braces();
        } else if (next == '\\') {
            escape();
        } else if (next == '[') {
            out_ += char_class();
        } else {
            out_ += next;
            rest_.remove_prefix(1);
        }
    }
    return out_;
}

void Translator::group() {
    for (const std::string_view known :
         {"(?i:", "(?-i:", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
        if (take(known)) {
            out_ += known;
            return;
        }
    }
    if (rest_.starts_with("(?") || rest_.starts_with("(*")) refuse(rest_.substr(0, 3));
    take("(");
    out_ += "(?:";  // nothing refers to what it captures
}

// {n}, {n,}, {n,m}, {,m}; any other brace is a plain character.
void Translator::braces() {
    constexpr std::string_view kNumbers = "0123456789,";
    const size_t end = rest_.find_first_not_of(kNumbers, 1);
    const std::string_view inside = rest_.substr(1, end == rest_.npos ? end : end - 1);
    const bool repeats = end != rest_.npos && rest_[end] == '}' && inside != "," &&
                         !inside.empty() && inside.find(',') == inside.rfind(',');
    if (!repeats) {
        out_ += "\\{";
        rest_.remove_prefix(1);
        return;
    }
    out_ += inside.front() == ',' ? "{0" : "{";
    out_ += inside;
    out_ += '}';
    rest_.remove_prefix(end + 1);
    if (rest_.starts_with('+')) refuse("}+");  // possessive in PCRE2 only
}

std::string Translator::hex_escape(size_t digits) {
    const size_t end = std::min(rest_.find_first_not_of("0123456789abcdefABCDEF"), rest_.size());
    if (end < digits) refuse("\\" + std::string(rest_.substr(0, 6)));
    const std::string out = "\\x{" + std::string(rest_.substr(0, digits)) + "}";
    rest_.remove_prefix(digits);
    return out;
}

// Copies an escape that means the same inside and outside of classes; the backslash is taken
// already. False: nothing was taken.
bool Translator::common_escape(std::string& out) {
    const char next = rest_.front();
    const bool is_punctuation = uint8_t(next) < 0x80 && uint8_t(next) > 0x20 &&
                                !std::isalnum(uint8_t(next)) && next != 0x7F;
    if (is_punctuation || next == ' ' ||
        std::string_view("dDntrfae").find(next) != std::string_view::npos) {
        out += std::string("\\") + next;
        rest_.remove_prefix(1);
    } else if (next == 'v') {
        out += "\\x0B";
        rest_.remove_prefix(1);
    } else if (next == 'p' || next == 'P') {
        const size_t end = rest_.find('}');
        if (rest_.size() < 2 || rest_[1] != '{' || end == rest_.npos) {
            refuse("\\" + std::string(rest_.substr(0, 2)));
        }
        out += "\\" + std::string(rest_.substr(0, end + 1));
        rest_.remove_prefix(end + 1);
    } else if (take("u")) {
        out += hex_escape(4);
    } else if (rest_.starts_with("x{")) {
        const size_t end = rest_.find('}');
        if (end == rest_.npos || end < 3 || end > 10) refuse("\\x{");
        rest_.remove_prefix(2);
        out += hex_escape(end - 2);
        take("}");
    } else if (take("x")) {
        out += hex_escape(2);
    } else {
        return false;
    }
    return true;
}

void Translator::escape() {
    rest_.remove_prefix(1);
    if (rest_.empty()) refuse("\\");
    const std::string word(kWord);
    if (common_escape(out_)) return;
    const char next = rest_.front();
    if (next == 's' || next == 'S') {
        out_ += (next == 's' ? "[" : "[^") + std::string(kWhiteSpace) + "]";
    } else if (next == 'w' || next == 'W') {
        out_ += (next == 'w' ? "[" : "[^") + word + "]";
    } else if (next == 'b' || next == 'B') {
        const char* after = next == 'b' ? "(?!" : "(?=";
        const char* other = next == 'b' ? "(?=" : "(?!";
        out_ += "(?:(?<=[" + word + "])" + after + "[" + word + "])|(?<![" + word + "])" + other +
                "[" + word + "]))";
    } else if (next == 'A' || next == 'z' || next == 'Z') {
        out_ += std::string("\\") + next;
    } else {
        refuse("\\" + std::string(1, next));
    }
    rest_.remove_prefix(1);
}

void Translator::escape_in_class(std::string& out) {
    rest_.remove_prefix(1);
    if (rest_.empty()) refuse("\\");
    if (common_escape(out)) return;
    if (take("s")) {
        out += kWhiteSpace;
    } else if (take("S")) {
        out += kNotSpace;
    } else if (take("w")) {
        out += kWord;
    } else if (take("b")) {
        out += "\\x08";
    } else {
        refuse("[\\" + std::string(1, rest_.front()));
    }
}

// A class, from its bracket on. The only set operation is "[...&&[...]]".
std::string Translator::char_class() {
    take("[");
    const bool negated = take("^");
    std::string out = negated ? "[^" : "[";
    if (take("]")) out += "\\]";
    while (!rest_.empty() && rest_.front() != ']') {
        if (rest_.front() == '\\') {
            escape_in_class(out);
        } else if (rest_.starts_with("&&[") && !negated) {
            if (is_nested_) refuse("&&");
            take("&&");
            is_nested_ = true;
            const std::string other = char_class();
            is_nested_ = false;
            if (!take("]")) refuse("&&");
            return "(?:(?=" + other + ")" + out + "])";
        } else if (rest_.front() == '[' || rest_.starts_with("&&")) {
            refuse("[" + std::string(rest_.substr(0, 2)));
        } else {
            out += rest_.front();
            rest_.remove_prefix(1);
        }
    }
    if (!take("]")) refuse("[ without ]");
    return out + "]";
}

}  // namespace

std::string pcre_pattern(std::string_view pattern) {
    if (pattern.size() > kMaxPatternBytes) throw Error("a pattern of more than 16 KB");
    if (pattern.find('\0') != pattern.npos) throw Error("a pattern with a NUL");
    return Translator(pattern).run();
}

}  // namespace aerie
