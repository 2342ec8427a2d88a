// Patterns mean what they mean to the tokenizers library: Unicode's white space, Oniguruma's
// syntax.
#include "text/regex.h"

#include <gtest/gtest.h>

#include "core/utf8.h"
#include "io/damage.h"
#include "text/regex_syntax.h"
#include "text/unicode.h"

namespace aerie {
namespace {

using Texts = std::vector<std::string>;

Texts matches(const std::string& pattern, std::string_view text) {
    Regex::Scratch room;
    std::vector<Span> found;
    Regex(pattern).find_all(text, room, found);
    Texts out;
    for (const Span span : found) out.emplace_back(text.substr(span.begin, span.end - span.begin));
    return out;
}

std::string utf8(char32_t code) {
    std::string text;
    append_char(text, code);
    return text;
}

TEST(Regex, WhiteSpaceIsUnicodes) {
    Regex::Scratch room;
    std::vector<Span> found;
    const Regex space("\\s"), space_class("[\\s]"), none("\\S"), none_class("[\\S]"),
        ahead("(?=\\s)");
    for (char32_t code = 1; code < 0x11000; ++code) {
        if (code >= 0xD800 && code < 0xE000) continue;
        // A Scratch limits the time for the texts of one call; instrumented code is too slow for
        // all of these.
        if (code % 1024 == 0) room = Regex::Scratch();
        const std::string text = utf8(code);
        for (const Regex* regex : {&space, &space_class, &ahead}) {
            regex->find_all(text, room, found);
            ASSERT_EQ(!found.empty(), is_white_space(code)) << uint32_t(code);
        }
        for (const Regex* regex : {&none, &none_class}) {
            regex->find_all(text, room, found);
            ASSERT_EQ(found.empty(), is_white_space(code)) << uint32_t(code);
        }
    }
    // PCRE2's own \s includes this character.
    EXPECT_FALSE(is_white_space(0x180E));
    EXPECT_EQ(matches("\\s+(?!\\S)|\\s+", "  \xE1\xA0\x8E"), (Texts{" ", " "}));
}

TEST(Regex, WordCharactersAreUnicodes) {
    const Regex word("\\w"), word_class("[\\w]");
    Regex::Scratch room;
    std::vector<Span> found;
    size_t differ = 0;  // the two libraries have tables of different versions
    for (char32_t code = 1; code < 0x3000; ++code) {
        word.find_all(utf8(code), room, found);
        const bool is_word = !found.empty();
        word_class.find_all(utf8(code), room, found);
        ASSERT_EQ(!found.empty(), is_word);
        const bool is_joiner = code == 0x200C || code == 0x200D;
        if (!is_joiner && is_word != is_word_character(code)) ++differ;
    }
    EXPECT_LE(differ, 40u);
    EXPECT_EQ(matches("\\w+", "e\xCC\x81_1-x"), (Texts{"e\xCC\x81_1", "x"}));
    EXPECT_EQ(matches("\\b", "a b").size(), 4u);
}

TEST(Regex, SyntaxIsOnigurumas) {
    EXPECT_EQ(matches("^a", "a\na"), (Texts{"a", "a"}));
    EXPECT_EQ(matches("a{,2}b", "aaab"), (Texts{"aab"}));
    EXPECT_EQ(matches("a{,", "a{,"), (Texts{"a{,"}));
    EXPECT_EQ(matches("\\v", "\x0B\x0C"), (Texts{"\x0B"}));
    EXPECT_EQ(matches("\\u00e9", "e\xC3\xA9"), (Texts{"\xC3\xA9"}));
    EXPECT_EQ(matches("[a-z&&[^c]]+", "abcd"), (Texts{"ab", "d"}));
    EXPECT_EQ(matches("(?i:'S)", "'s'S'\xC5\xBF"), (Texts{"'s", "'S", "'\xC5\xBF"}));
    EXPECT_EQ(matches("(a)(b)", "ab"), (Texts{"ab"}));
    EXPECT_EQ(matches(".", "\r\n\xE2\x80\xA8"), (Texts{"\r", "\xE2\x80\xA8"}));
}

TEST(Regex, EmptyMatchesMoveOn) {
    EXPECT_EQ(matches("x*", "axb"), (Texts{"", "x", ""}));
    EXPECT_EQ(matches("", "a\xC3\xA9"), (Texts{"", "", ""}));
    EXPECT_EQ(matches("(?=b)", "abab"), (Texts{"", ""}));
    EXPECT_EQ(matches("a", ""), Texts());
}

// A match far from the last one lies beyond the window of one search.
TEST(Regex, FindsWhatIsFar) {
    for (const size_t far : {63u, 64u, 65u, 66'000u, 1'500'000u}) {
        const std::string text = std::string(far, '.') + "\xC3\xA9" + std::string(far, '.') + "x";
        EXPECT_EQ(matches("\xC3\xA9|x", text), (Texts{"\xC3\xA9", "x"})) << far;
    }
}

TEST(NormalForm, OrdersAndComposes) {
    EXPECT_EQ(normal_form("e\xCC\x81", NormalForm::nfc), "\xC3\xA9");
    EXPECT_EQ(normal_form("\xC3\xA9", NormalForm::nfd), "e\xCC\x81");
    EXPECT_EQ(normal_form("\xEF\xAC\x81", NormalForm::nfkc), "fi");
    EXPECT_EQ(normal_form("\xEF\xAC\x81", NormalForm::nfc), "\xEF\xAC\x81");
    // U+0323 (class 220) goes before U+0301 (230), then composes with the letter.
    EXPECT_EQ(normal_form("e\xCC\x81\xCC\xA3", NormalForm::nfd), "e\xCC\xA3\xCC\x81");
    EXPECT_EQ(normal_form("e\xCC\x81\xCC\xA3", NormalForm::nfc), "\xE1\xBA\xB9\xCC\x81");
    EXPECT_EQ(normal_form("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", NormalForm::nfc), "\xED\x95\x9C");
    const std::string nul("\xC3\xA9\0e", 4);
    EXPECT_EQ(normal_form(nul, NormalForm::nfc), nul);
}

}  // namespace
}  // namespace aerie
