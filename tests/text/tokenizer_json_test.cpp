// Faults of tokenizer.json files: each gives one line, soon and in little memory.
#include <ctime>

#include "io/damage.h"
#include "text/bpe_tokenizer.h"
#include "text/small_tokenizers.h"
#include "text/tokenizer_json_parts.h"

namespace aerie {
namespace {

using test::error_of;

constexpr const char* kFile = "tokenizer.json";

#ifdef __SANITIZE_ADDRESS__
constexpr double kMaxSeconds = 20;
#else
constexpr double kMaxSeconds = 1;
#endif

// Processor time in seconds: other programs do not count.
template <typename Action>
double cpu_seconds_of(const Action& action) {
    const std::clock_t start = std::clock();
    action();
    return double(std::clock() - start) / CLOCKS_PER_SEC;
}

std::string problem(const std::string& json) {
    std::string message;
    const double seconds =
        cpu_seconds_of([&] { message = error_of([&] { BpeTokenizer::from_json(json, kFile); }); });
    EXPECT_LE(seconds, kMaxSeconds) << message;
    return message;
}

using test::repeated;
constexpr auto split = test::split_by;
using Parts = test::TokenizerParts;

void use(const std::string& json) {
    const BpeTokenizer tokenizer = BpeTokenizer::from_json(json, kFile);
    const std::vector<int> ids = tokenizer.encode_whole("a ab <x> \xC3\xA9 <s><unk>b1  ");
    tokenizer.decode(ids, false);
    for (const int id : ids) ASSERT_LT(id, tokenizer.size());
}

TEST(TokenizerJson, RefusesWhatItDoesNotKnowByName) {
    const std::pair<Parts, const char*> cases[] = {
        {{.more = R"(,"dropout":0.1)"}, "dropout of the model is not supported"},
        {{.more = R"(,"continuing_subword_prefix":"##")"}, "continuing_subword_prefix"},
        {{.more = R"(,"end_of_word_suffix":"</w>")"}, "end_of_word_suffix"},
        {{.more = R"(,"unk_token":"<unk>")"}, "unk_token '<unk>' is no token"},
        {{.more = R"(,"unk_token":3)"}, "'unk_token' of a part is no string"},
        {{.more = R"(,"byte_fallback":1)"}, "'byte_fallback' of a part is no boolean"},
        {{.normalizer = R"({"type":"Lowercase"})"}, "normalizer 'Lowercase' is not supported"},
        {{.normalizer = R"({"type":"Nmt"})"}, "normalizer 'Nmt' is not supported"},
        {{.normalizer = R"({})"}, "normalizer has no type"},
        {{.normalizer = R"(3)"}, "normalizer has no type"},
        {{.normalizer = R"([])"}, "normalizer has no type"},
        {{.normalizer = R"({"type":"Sequence"})"}, "a part lacks 'normalizers'"},
        {{.normalizer = R"({"type":"Sequence","normalizers":{}})"}, "is no list"},
        {{.normalizer = R"({"type":"Replace","content":"a"})"}, "a part lacks 'pattern'"},
        {{.normalizer = R"({"type":"Replace","pattern":"a","content":"a"})"}, "neither a String"},
        {{.normalizer = R"({"type":"Prepend","prepend":7})"}, "is no string"},
        {{.pre = R"({"type":"BertPreTokenizer"})"}, "'BertPreTokenizer' is not supported"},
        {{.pre = R"({"type":"Whitespace"})"}, "pre_tokenizer 'Whitespace' is not supported"},
        {{.pre = R"({"type":"Split","pattern":{"String":"a"},"behavior":"Odd","invert":false})"},
         "behavior 'Odd' is not supported"},
        {{.pre = R"({"type":"Metaspace","replacement":""})"}, "empty replacement"},
        {{.pre = R"({"type":"Metaspace","replacement":"_","prepend_scheme":"last"})"},
         "prepend_scheme 'last' is not supported"},
        {{.pre =
              R"({"type":"Sequence","pretokenizers":[{"type":"ByteLevel","add_prefix_space":false},
            {"type":"Digits","individual_digits":true}]})"},
         "pre_tokenizer 'Digits' after ByteLevel"},
        {{.pre = R"({"type":"ByteLevel","add_prefix_space":false})",
          .more = R"(,"byte_fallback":true)"},
         "byte_fallback in a byte-level model"},
        {{.post = R"({"type":"RobertaProcessing"})"}, "'RobertaProcessing' is not supported"},
        {{.post = R"({"type":"TemplateProcessing","single":[]})"}, "single text is none"},
        {{.post = R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"B"}}]})"}, "none"},
        {{.post = R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}]})"},
         "lacks 'special_tokens'"},
        {{.post = R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}],
            "special_tokens":{"x":{"ids":[-1]}}})"},
         "is no list of ids"},
        {{.post = R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},
            {"Sequence":{"id":"A"}}],"special_tokens":{"x":{"ids":[77]}}})"},
         "adds 77, which is no token"},
        {{.decoder = R"({"type":"WordPiece"})"}, "decoder 'WordPiece' is not supported"},
        {{.decoder = R"({"type":"Strip","content":"","start":1,"stop":0})"}, "strips nothing"},
        {{.decoder = R"({"type":"Strip","content":" ","start":-1,"stop":0})"}, "is no count"},
        {{.decoder = R"({"type":"Strip","content":" ","start":1e18,"stop":0})"}, "is no count"},
        {{.added = R"({})"}, "added_tokens is no list"},
        {{.added = R"([3])"}, "a part lacks 'content'"},
        {{.added = R"([{"content":"x"}])"}, "a part lacks 'id'"},
        {{.added = R"([{"content":"x","id":-1}])"}, "is no count"},
        {{.added = R"([{"content":"x","id":4294967296}])"}, "is no count"},
        {{.added = R"([{"content":"","id":3}])"}, "an added token is empty"},
        {{.added = R"([{"content":"x","id":1}])"}, "the vocabulary says otherwise"},
        {{.added = R"([{"content":"a","id":3}])"}, "the vocabulary says otherwise"},
        {{.added = R"([{"content":"x","id":3},{"content":"x","id":4}])"}, "is there twice"},
        {{.added = R"([{"content":"x","id":3},{"content":"y","id":3}])"}, "the id of another"},
        {{.added = R"([{"content":"x","id":3,"special":"yes"}])"}, "is no boolean"},
        {{.added = R"([{"content":")" + std::string(257, 'x') + R"(","id":3}])"}, "is too long"},
    };
    for (const auto& [parts, expected] : cases) {
        const std::string message = problem(parts.file());
        EXPECT_TRUE(message.starts_with("tokenizer.json: ")) << message;
        EXPECT_NE(message.find(expected), message.npos) << message << " | " << expected;
    }
    for (const char* type : {"\"WordPiece\"", "\"Unigram\"", "\"WordLevel\"", "7", "null"}) {
        std::string file = Parts{.vocab = R"([["a",-1.5],["b",-2]])"}.file();
        file.replace(file.find("\"BPE\""), 5, type);
        EXPECT_NE(problem(file).find("is not supported, only 'BPE'"), std::string::npos);
    }
}

TEST(TokenizerJson, RefusesBadVocabulariesAndMerges) {
    const std::pair<Parts, const char*> cases[] = {
        {{.vocab = R"({"a":-1})"}, "token 'a' has the id -1, which is out of range"},
        {{.vocab = R"({"a":1048576})"}, "out of range"},
        {{.vocab = R"({"a":9223372036854775807})"}, "out of range"},
        {{.vocab = R"({"a":18446744073709551615})"}, "no table of ids"},
        {{.vocab = R"({"a":0,"b":0})"}, "token 'b' has the id of 'a'"},
        {{.vocab = R"({"a":0,"a":1})"}, "token 'a' is there twice"},
        {{.vocab = R"({"a":0.5})"}, "no table of ids"},
        {{.vocab = R"({"a":"0"})"}, "no table of ids"},
        {{.vocab = R"({"a":{"b":1}})"}, "no table of ids"},
        {{.vocab = R"({})"}, "no table of ids"},
        {{.vocab = R"(7)"}, "no table of ids"},
        {{.vocab = R"(null)"}, "no table of ids"},
        {{.vocab = R"({"a":0,"b":1})"}, "a merge names 'ab', which is no token"},
        {{.merges = R"(["a c"])"}, "a merge names 'ac', which is no token"},
        {{.merges = R"([["a","b"],["b","b"]])"}, "a merge names 'bb'"},
        {{.merges = R"(["a b c"])"}, "merge 0 is no pair of tokens"},
        {{.merges = R"(["ab"])"}, "merge 0 is no pair of tokens"},
        {{.merges = R"([" ab"])"}, "merge 0 is no pair of tokens"},
        {{.merges = R"(["a b",""])"}, "merge 1 is no pair of tokens"},
        {{.merges = R"([["a"]])"}, "is no pair of tokens"},
        {{.merges = R"([["a","b","c"]])"}, "is no pair of tokens"},
        {{.merges = R"([["a",1]])"}, "is no pair of tokens"},
        {{.merges = R"([[["a","b"]]])"}, "is no pair of tokens"},
        {{.merges = R"({"a":"b"})"}, "is no pair of tokens"},
        {{.merges = R"("a b")"}, "is no pair of tokens"},
        {{.merges = R"(null)"}, "is no pair of tokens"},
        {{.merges = "[" + repeated("\"\"", 1'000'000, ",") + "]"}, "is no pair of tokens"},
        {{.vocab = "[" + repeated("\"\"", 1'000'000, ",") + "]"}, "no table of ids"},
        {{.added = "[" + repeated("\"\"", 60'000, ",") + "]"}, "a part lacks 'content'"},
        {{.added = "[" + repeated("\"\"", 1'100'000, ",") + "]"}, "more than 600000 values"},
        {{.merges = repeated("[", 100, "")}, "is no pair of tokens"},
        {{.vocab = repeated("{\"a\":", 100, "")}, "nested deeper than 64"},
        {{.normalizer = repeated(R"({"type":"Sequence","normalizers":[)", 40, "")}, "nested"},
    };
    for (const auto& [parts, expected] : cases) {
        const std::string message = problem(parts.file());
        EXPECT_TRUE(message.starts_with("tokenizer.json: ")) << message;
        EXPECT_NE(message.find(expected), message.npos) << message << " | " << expected;
    }
    for (const char* file : {"", "null", "[]", "{}", "\"a\"", R"({"model":7})", R"({"model":{}})",
                             R"({"model":{"type":"BPE"}})"}) {
        EXPECT_NE(problem(file), "") << file;
    }
}

TEST(TokenizerJson, TakesGapsAndOddNames) {
    EXPECT_EQ(problem(Parts{.vocab = R"({"a":0,"b":90,"ab":1000000,"":7})"}.file()), "");
    // These are no byte tokens, but texts like others (llama.cpp#27226: "<0x-1>" became an index of
    // -1).
    const BpeTokenizer own = BpeTokenizer::from_json(
        Parts{.decoder = R"({"type":"ByteFallback"})",
              .vocab = R"({"<0x-1>":0,"<0xGG>":1,"<0x0a>":2,"<0x100>":3,"<0x0A>":4})",
              .merges = "[]",
              .more = R"(,"byte_fallback":true)"}
            .file(),
        kFile);
    EXPECT_EQ(own.decode({0, 1, 2, 3, 4}, false), "<0x-1><0xGG><0x0a><0x100>\n");
    EXPECT_EQ(own.encode("a\n"), (std::vector<int>{4}));
    // Unknown characters become one token each, or one for a run.
    for (const bool fused : {false, true}) {
        const BpeTokenizer unknown =
            BpeTokenizer::from_json(Parts{.merges = "[]",
                                          .more = std::string(R"(,"unk_token":"b","fuse_unk":)") +
                                                  (fused ? "true" : "false")}
                                        .file(),
                                    kFile);
        EXPECT_EQ(unknown.encode("xya?").size(), fused ? 3u : 4u);
    }
}

TEST(TokenizerJson, SlowPatternsAreErrors) {
    const std::string letters(300'000, 'a');
    for (const char* regex :
         {"(a+)+$", "(a|a)*b", "(a|aa)+$", "a*a*a*a*a*a*a*b$", "(?:a?){60}a{60}b", "(?=(a+)+$)a",
          "((a*)*)*c", "(?<!x)(?:a|a|a)+\\\\d"}) {
        const BpeTokenizer own = BpeTokenizer::from_json(Parts{.pre = split(regex)}.file(), kFile);
        std::string message;
        const double seconds = cpu_seconds_of(
            [&] { message = error_of([&] { own.encode(letters + "!" + letters); }); });
        EXPECT_LE(seconds, kMaxSeconds) << regex;
        EXPECT_TRUE(message.starts_with("tokenizer.json: pattern")) << regex;
    }
    for (const char* regex : {"(",
                              "a)",
                              "[a",
                              "*",
                              "\\\\",
                              "(?P<a>b)",
                              "(?R)",
                              "(*UTF8)a",
                              "(?C1)",
                              "\\\\1(a)",
                              "\\\\h",
                              "\\\\Ca",
                              "\\\\Qa",
                              "[[:alpha:]]",
                              "\\\\p{Nothing}",
                              "\\\\p{L",
                              "\\\\x{FFFFFFFF}",
                              "a{1,2}+",
                              "(?#a)",
                              "[a&&b]",
                              "[z-a]",
                              "(?i)a(?i)b",
                              "\\u0000",
                              "((((a{999}){999}){999}){999})"}) {
        EXPECT_NE(problem(Parts{.pre = split(regex)}.file()), "") << regex;
    }
    EXPECT_NE(problem(Parts{.pre = split(repeated("(", 10'000, ""))}.file()), "");
    EXPECT_NE(problem(Parts{.pre = split(std::string(20'000, 'a'))}.file()), "");
}

TEST(TokenizerJson, SurvivesDamage) {
    test::expect_survives_damage(test::small_byte_level_json(), use);
    test::expect_survives_damage(test::small_sentencepiece_json(), use);
}

// As many tokens and merges as the largest vocabularies have.
TEST(TokenizerJson, ReadsLargeVocabularies) {
    std::string vocab = "{", merges = "[";
    const std::string alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    std::vector<std::string> tokens;
    const auto add = [&](const std::string& token) {
        vocab += (tokens.empty() ? "\"" : ",\"") + token + "\":" + std::to_string(tokens.size());
        tokens.push_back(token);
    };
    for (const char letter : alphabet) add(std::string(1, letter));
    size_t count = 0;
    const auto join = [&](const std::string& left, const std::string& right) {
        merges += (count++ ? ",\"" : "\"") + left + " " + right + "\"";
    };
    for (size_t left = 0; tokens.size() < 150'000; ++left) {
        const std::string begin = tokens[left];
        for (size_t right = 0; right < alphabet.size() && tokens.size() < 150'000; ++right) {
            add(begin + alphabet[right]);
            join(begin, std::string(1, alphabet[right]));
            if (begin.size() == 2) join(begin.substr(0, 1), begin.substr(1) + alphabet[right]);
        }
    }
    const std::string file = Parts{.vocab = vocab + "}", .merges = merges + "]"}.file();
    EXPECT_LE(cpu_seconds_of([&] { use(file); }), kMaxSeconds);
    EXPECT_GE(count, 280'000u);
}

}  // namespace
}  // namespace aerie
