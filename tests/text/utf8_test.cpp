// Repair of UTF-8, whole and in parts.
#include "core/utf8.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace aerie {
namespace {

constexpr const char* kWrong = "\xEF\xBF\xBD";

std::string repaired(std::string_view bytes) {
    std::string out;
    EXPECT_EQ(append_utf8(out, bytes, true), bytes.size());
    return out;
}

TEST(Utf8, KeepsWellFormedText) {
    for (const std::string_view text :
         {std::string_view("plain"), std::string_view("\0", 1), std::string_view("\xC2\x80"),
          std::string_view("\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80"),
          std::string_view("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF")}) {
        EXPECT_TRUE(is_utf8(text));
        EXPECT_EQ(repaired(text), text);
    }
}

TEST(Utf8, ReplacesEachMaximalMalformedPiece) {
    const std::vector<std::pair<std::string, int>> cases = {
        {"\x80", 1},         {"\xC0\x80", 2},         {"\xC1\xBF", 2},         {"\xE0\x9F\xBF", 3},
        {"\xED\xA0\x80", 3}, {"\xF0\x8F\xBF\xBF", 4}, {"\xF4\x90\x80\x80", 4}, {"\xF5", 1},
        {"\xFF", 1},         {"\xE2\x82", 1},         {"\xF0\x9F\x98", 1},     {"\xC3", 1},
        {"\xE2\xE2\x82", 2}};
    for (const auto& [bytes, count] : cases) {
        EXPECT_FALSE(is_utf8(bytes));
        std::string expected = "a";
        for (int i = 0; i < count; ++i) expected += kWrong;
        EXPECT_EQ(repaired("a" + bytes + "b"), expected + "b");
    }
}

TEST(Utf8, PartsGiveWhatTheWholeGives) {
    std::mt19937 random(1);
    const std::string alphabet = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xFF";
    for (int round = 0; round < 2000; ++round) {
        std::string whole, parts, pending;
        for (size_t i = random() % 20; i > 0; --i) whole += alphabet[random() % alphabet.size()];
        for (const char byte : whole) {
            pending += byte;
            pending.erase(0, append_utf8(parts, pending, false));
            EXPECT_LE(pending.size(), 3u);
        }
        append_utf8(parts, pending, true);
        EXPECT_EQ(parts, repaired(whole));
        EXPECT_TRUE(is_utf8(parts));
    }
}

TEST(Utf8, CharactersAreTakenOneByOne) {
    std::string_view text = "a\xC2\x80\xEF\xBF\xBD\xF4\x8F\xBF\xBF";
    for (const char32_t code : {U'a', U'\x80', U'\xFFFD', U'\x10FFFF'})
        EXPECT_EQ(take_char(text), code);
    EXPECT_TRUE(text.empty());
}

TEST(Utf8, CharactersAreAppendedAsTheyAreTaken) {
    for (char32_t code = 0; code <= 0x10FFFF; ++code) {
        if (code >= 0xD800 && code < 0xE000) continue;
        std::string text = "a";
        append_char(text, code);
        ASSERT_TRUE(is_utf8(text)) << uint32_t(code);
        std::string_view rest = std::string_view(text).substr(1);
        ASSERT_EQ(take_char(rest), code);
        ASSERT_TRUE(rest.empty());
    }
}

TEST(Utf8, PrintableTextHasNothingThatIsObeyed) {
    EXPECT_EQ(printable("a\x1B[2Jb\r\n\x7F"), "a?[2Jb???");
    EXPECT_EQ(printable("\xC2\x80\xC2\x9B\xC2\x9F\xC2\xA0"), "???\xC2\xA0");
    for (const char* turn : {"\xE2\x80\xAA", "\xE2\x80\xAE", "\xE2\x81\xA6", "\xE2\x81\xA9"})
        EXPECT_EQ(printable(turn), "?");
    for (const char* plain : {"\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\xA5", "\xE2\x81\xAA"})
        EXPECT_EQ(printable(plain), plain);
    EXPECT_EQ(printable("a\n\tb\x1B", "\n\t", "!"), "a\n\tb!");
    EXPECT_EQ(printable("\x9B"
                        "2J"),
              std::string(kWrong) + "2J");
}

TEST(Utf8, QuotedNamesFitOnALine) {
    EXPECT_EQ(in_quotes("a\nb\x1B[0m\x7F"), "'a?b?[0m?'");
    EXPECT_EQ(in_quotes("\xFF"), std::string("'") + kWrong + "'");
    EXPECT_LT(in_quotes(std::string(10'000, 'x')).size(), 130u);
}

}  // namespace
}  // namespace aerie
