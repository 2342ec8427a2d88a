// Streaming decode against a naive answer over the whole text.
#include "text/stream.h"

#include <gtest/gtest.h>

#include <random>

#include "core/utf8.h"
#include "rounds.h"
#include "text/write_model.h"

namespace aerie {
namespace {

// Tokens of one to four bytes or characters: ids 3 to 258 are the bytes, then these pieces.
const Tokenizer& tokenizer() {
    static const Tokenizer made =
        Tokenizer::from_bytes(test::ModelWriter{.pieces = {{"a"},
                                                           {"b"},
                                                           {"ab"},
                                                           {"ba"},
                                                           {"aba"},
                                                           {"\xE2\x96\x81"},
                                                           {"\xE2\x96\x81"
                                                            "a"},
                                                           {"\xC3\xA9"},
                                                           {"\xE2\x82\xAC"
                                                            "b"}}}
                                  .file(),
                              "m");
    return made;
}
constexpr int kFirstByte = 3;
constexpr int kFirstPiece = 259;
constexpr int kPieces = 9;

std::vector<int> bytes_as_ids(std::string_view bytes) {
    std::vector<int> ids;
    for (const char byte : bytes) ids.push_back(kFirstByte + uint8_t(byte));
    return ids;
}

struct Streamed {
    std::vector<std::string> parts;  // one for each token, then finish()'s if no stop came
    bool stopped = false;
    std::string text() const {
        std::string all;
        for (const std::string& part : parts) all += part;
        return all;
    }
};

Streamed stream(const std::vector<int>& ids, std::vector<std::string> stops) {
    TextStream text(tokenizer(), std::move(stops));
    Streamed result;
    for (const int id : ids) {
        result.parts.push_back(text.push(id));
        if (text.stopped()) break;
    }
    if (!text.stopped()) result.parts.push_back(text.finish());
    result.stopped = text.stopped();
    return result;
}

// The whole text, cut before the stop string that ends first (the longer one if two end there).
std::pair<std::string, bool> naive(const std::vector<int>& ids,
                                   const std::vector<std::string>& stops) {
    const std::string text = tokenizer().decode(ids);
    for (size_t end = 1; end <= text.size(); ++end) {
        size_t longest = 0;
        for (const std::string& stop : stops) {
            const bool here = !stop.empty() && is_utf8(stop) &&
                              std::string_view(text).substr(0, end).ends_with(stop);
            if (here) longest = std::max(longest, stop.size());
        }
        if (longest > 0) return {text.substr(0, end - longest), true};
    }
    return {text, false};
}

TEST(TextStream, GivesTokensAtOnceWithoutStops) {
    const Streamed result = stream(bytes_as_ids(" one two"), {});
    EXPECT_EQ(result.parts, (std::vector<std::string>{"", "o", "n", "e", " ", "t", "w", "o", ""}));
    EXPECT_FALSE(result.stopped);
}

TEST(TextStream, DropsOnlyOneLeadingSpace) {
    EXPECT_EQ(stream(bytes_as_ids("  x"), {}).text(), " x");
    EXPECT_EQ(stream(bytes_as_ids("x"), {}).text(), "x");
    EXPECT_EQ(stream({tokenizer().bos(), kFirstByte + ' ', kFirstByte + 'x'}, {}).text(), "x");
}

TEST(TextStream, NeverSplitsACharacter) {
    const Streamed result = stream(bytes_as_ids("\xF0\x9F\x98\x80x\xE2\x82"), {});
    EXPECT_EQ(result.parts, (std::vector<std::string>{"", "", "", "\xF0\x9F\x98\x80", "x", "", "",
                                                      "\xEF\xBF\xBD"}));
}

TEST(TextStream, HoldsBackOnlyWhatMayBecomeAStop) {
    const Streamed result = stream(bytes_as_ids("xababc"), {"abc"});
    EXPECT_EQ(result.parts, (std::vector<std::string>{"x", "", "", "ab", "", ""}));
    EXPECT_TRUE(result.stopped);
    EXPECT_EQ(stream(bytes_as_ids("xab"), {"abc"}).parts,
              (std::vector<std::string>{"x", "", "", "ab"}));
}

TEST(TextStream, TheStopThatEndsFirstCounts) {
    EXPECT_EQ(stream(bytes_as_ids("12345"), {"2345", "34"}).text(), "12");
    EXPECT_EQ(stream(bytes_as_ids("12345"), {"34", "234"}).text(), "1");
    EXPECT_EQ(stream(bytes_as_ids("12345"), {"1"}).text(), "");
    EXPECT_EQ(stream({kFirstPiece + 4}, {"b", "aba"}).text(), "a");
}

TEST(TextStream, IgnoresStopsThatCannotOccur) {
    const Streamed result = stream(bytes_as_ids("x\xC3\xA9y"), {"", "\xA9", "\xFF"});
    EXPECT_EQ(result.text(), "x\xC3\xA9y");
    EXPECT_FALSE(result.stopped);
}

TEST(TextStream, NothingComesAfterAStop) {
    TextStream text(tokenizer(), {"a"});
    EXPECT_EQ(text.push(kFirstPiece + 2), "");  // "ab"
    EXPECT_TRUE(text.stopped());
    EXPECT_EQ(text.finish(), "");
}

// 20,000 random lists of tokens, some with broken UTF-8, and random stops.
TEST(TextStream, EqualsTheNaiveAnswer) {
    std::mt19937 random(3);
    const std::string bytes = " ab\xC3\xA9\xE2\x82\xAC\xFF\n";
    const std::vector<std::string> atoms = {
        "a", "b", " ", "\xC3\xA9", "\xE2\x82\xAC", "\xEF\xBF\xBD", "\n", "\xC3"};
    for (int round = 0; round < test::rounds(20'000); ++round) {
        std::vector<int> ids;
        for (size_t i = random() % 16; i > 0; --i) {
            ids.push_back(random() % 2 ? kFirstPiece + int(random() % kPieces)
                                       : kFirstByte + uint8_t(bytes[random() % bytes.size()]));
        }
        std::vector<std::string> stops(random() % 4);
        for (std::string& stop : stops) {
            for (size_t i = random() % 4; i > 0; --i) stop += atoms[random() % atoms.size()];
        }
        const Streamed result = stream(ids, stops);
        const auto [text, stopped] = naive(ids, stops);
        ASSERT_EQ(result.text(), text) << "round " << round;
        ASSERT_EQ(result.stopped, stopped) << "round " << round;
        for (const std::string& part : result.parts) ASSERT_TRUE(is_utf8(part));
    }
}

}  // namespace
}  // namespace aerie
