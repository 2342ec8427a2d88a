// The bound on the bytes of a token holds for every text; there is no bound if some step takes text
// of any length.
#include "text/longest_token.h"

#include <gtest/gtest.h>

#include "paths.h"
#include "text/tokenizer.h"

namespace aerie {
namespace {

std::string times(int count, const std::string& text) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
}

// Characters that normalisers shorten, long words, runs of one character, broken UTF-8.
std::vector<std::string> texts() {
    std::vector<std::string> all;
    for (const char* part :
         {" ", "a", "ab ", "=", "\n", "0", "the ", "\xE2\x84\xAA", "\xF0\x9D\x9F\x8E", "\xF0\x9F",
          "\xE1\xBE\xBE\xCC\x88\xCC\x81", "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", "\xE2\x96\x81"})
        for (const int count : {1, 7, 300, 5000}) all.push_back(times(count, part));
    return all;
}

TEST(LongestToken, BoundsTheBytesOfEveryText) {
    const std::filesystem::path tokenizers = test::test_data_dir() / "tokenizers";
    for (const std::filesystem::path& path :
         {test::models_dir() / "aerie-tiny", tokenizers / "qwen2.json",
          tokenizers / "llama2-sp.json", tokenizers / "deepseek.json"}) {
        TokenizerSource source;
        source.file = source.path = path;
        const Tokenizer tokenizer =
            path.extension() == ".json" ? Tokenizer::load(source) : Tokenizer::load(path);
        const size_t longest = tokenizer.longest_token_bytes();
        ASSERT_GE(longest, 4u) << path;
        EXPECT_LT(longest, 4096u) << path;
        for (const std::string& text : texts())
            EXPECT_LE(text.size(), tokenizer.encode(text, Recognised::all).size() * longest)
                << path << " " << text.substr(0, 8) << " " << text.size();
    }
}

// A model that knows "a", "b" and "ababab".
BpeTokenizer::Parts parts(const BpeRules& rules) {
    Vocabulary vocabulary;
    vocabulary.add("a", 0);
    vocabulary.add("b", 1);
    vocabulary.add("ababab", 2);
    return {.file = "t", .bpe = Bpe(std::move(vocabulary), Merges(), rules)};
}

TEST(LongestToken, IsWithoutBoundWhereSomethingTakesAnyLength) {
    const BpeRules known{.unknown = 0};
    EXPECT_EQ(longest_token_bytes(parts(known)), 6u);
    EXPECT_EQ(longest_token_bytes(parts(BpeRules())), 0u);  // other characters are left out
    EXPECT_EQ(longest_token_bytes(parts({.fuse_unknown = true, .unknown = 0})), 0u);
    const auto normalised = [&](std::vector<Normaliser::Step> steps) {
        BpeTokenizer::Parts own = parts(known);
        own.normaliser = Normaliser(std::move(steps));
        return longest_token_bytes(own);
    };
    EXPECT_EQ(normalised({NormalForm::nfc}), 24u);
    EXPECT_EQ(normalised({Normaliser::Prepend{" "}, Normaliser::Replace{"cdefg", "ab"}}), 18u);
    EXPECT_EQ(normalised({Normaliser::Replace{" ", "abc"}}), 6u);
    EXPECT_EQ(normalised({Normaliser::Replace{"c", ""}}), 0u);
    EXPECT_EQ(normalised({Normaliser::Replace{Regex(" +"), " "}}), 0u);
    EXPECT_EQ(normalised({Normaliser::Strip{}}), 0u);
    BpeTokenizer::Parts removing = parts(known);
    removing.pre_tokens = PreTokens({PreTokens::Split{Regex(" "), Delimiter::removed}});
    EXPECT_EQ(longest_token_bytes(removing), 0u);
    for (const bool left : {true, false}) {
        AddedToken token{.text = "<a long added token>", .id = 3};
        BpeTokenizer::Parts own = parts(known);
        own.added = AddedTokens({token}, {});
        EXPECT_EQ(longest_token_bytes(own), 20u);
        (left ? token.takes_left : token.takes_right) = true;
        own.added = AddedTokens({token}, {});
        EXPECT_EQ(longest_token_bytes(own), 0u);
    }
}

}  // namespace
}  // namespace aerie
