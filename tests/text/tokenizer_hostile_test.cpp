// Tokenizer files made to take all time or memory: each gives an error of one line or a tokenizer,
// within kMaxSeconds of processor time and 256 MB, and so does its use on a text.
#include <algorithm>
#include <cmath>

#include "io/bounded.h"
#include "text/bpe_tokenizer.h"
#include "text/tokenizer_json_parts.h"

namespace aerie {
namespace {

using test::repeated;
using test::split_by;
using Parts = test::TokenizerParts;

#ifdef __SANITIZE_ADDRESS__
constexpr size_t kMany = 50'000;
#else
constexpr size_t kMany = 1'000'000;
#endif

// Numbered items, so that they differ: `before` 0 `after`, `before` 1 `after`, ...
std::string numbered(size_t count, const std::string& before, const std::string& after) {
    std::string out;
    for (size_t i = 0; i < count; ++i) {
        out += (i > 0 ? "," : "") + before + std::to_string(i) + after;
    }
    return out;
}

std::string vocab_of(size_t count) {
    std::string out = "{";
    for (size_t i = 0; i < count; ++i) {
        out += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":" + std::to_string(i);
    }
    return out + "}";
}

std::string added(const std::string& text, const std::string& flags = "") {
    return R"([{"content":")" + text + R"(","id":3)" + flags + "}]";
}

std::string replace(const std::string& pattern, const std::string& by) {
    return R"({"type":"Replace","pattern":)" + pattern + R"(,"content":")" + by + "\"}";
}

std::string steps(const std::string& name, const std::string& step, size_t count) {
    return R"({"type":"Sequence",")" + name + "\":[" + repeated(step, count, ",") + "]}";
}

std::string sum(size_t length) {  // tokens "a", "aa", ..., and every merge of two of them
    std::string vocab = "{", merges = "[";
    for (size_t i = 1; i <= length; ++i) {
        vocab += (i > 1 ? ",\"" : "\"") + std::string(i, 'a') + "\":" + std::to_string(i);
        for (size_t left = 1; left < i; ++left) {
            merges += (merges.size() > 1 ? ",\"" : "\"") + std::string(left, 'a') + " " +
                      std::string(i - left, 'a') + "\"";
        }
    }
    return Parts{.vocab = vocab + "}", .merges = merges + "]"}.file();
}

class TokenizerHostile : public testing::Test {
  protected:
    // The error of reading the file, or of encoding and decoding with it.
    std::string problem(const std::string& name, const std::string& file,
                        const std::string& text = "a ab b  ba\xC3\xA9 1 \n\n") {
        const std::string message = bounded_.error_of(name, [&] {
            const BpeTokenizer own = BpeTokenizer::from_json(file, "t.json");
            const std::vector<int> ids = own.encode_whole(text);
            for (const int id : ids) ASSERT_LT(id, own.size());
            own.decode(ids, false);
        });
        EXPECT_TRUE(message.empty() || message.starts_with("t.json: ")) << name << message;
        return message;
    }
    std::string problem(const Parts& parts, const std::string& text = "a ab b  ba\xC3\xA9 1 \n\n") {
        const Parts good;
        std::string name;  // the parts that are not the usual ones
        for (const auto part : {&Parts::added, &Parts::normalizer, &Parts::pre, &Parts::post,
                                &Parts::decoder, &Parts::vocab, &Parts::merges, &Parts::more}) {
            if (parts.*part != good.*part) name += (parts.*part).substr(0, 40) + " ";
        }
        return problem(name, parts.file(), text);
    }

    test::Bounded bounded_{256u << 20};
};

TEST_F(TokenizerHostile, Vocabularies) {
    const std::string long_text(15'000'000, 'x'), huge(60'000'000, 'x');
    const std::string over = ", which is out of range";
    const std::pair<Parts, std::string> cases[] = {
        {{.vocab = "{" + repeated("\"\":0", kMany, ",") + "}"}, "has the id of ''"},
        {{.vocab = "{" + numbered(kMany, "\"\":", "") + "}"}, "token '' is there twice"},
        {{.vocab = vocab_of(kMany), .merges = "[]"}, ""},
        {{.vocab = vocab_of((1 << 20) + 1), .merges = "[]"}, over},
        {{.vocab = "{" + numbered(kMany, "\"a", "\":0") + "}"}, "has the id of 'a0'"},
        {{.vocab = "{\"" + long_text + "\":0}"}, "more than 65536 bytes"},
        {{.vocab = "{\"" + huge + "\":0}"}, "more than 16 MB"},
        {{.vocab = "{\"a\":\"" + huge + "\"}"}, "more than 16 MB"},
        {{.vocab = "{\"a\":\"" + long_text + "\"}"}, "no table of ids"},
        {{.vocab = "{\"a\":" + repeated("9", 1'000'000, "") + "}"}, "out of range"},
        {{.vocab = "{\"a\":" + repeated("9", 60'000'000, "") + "}"}, "more than 16 MB"},
        {{.vocab = "{\"a\":-" + repeated("9", 18, "") + "}"}, over},
        {{.vocab = "{\"a\":1e3}"}, "no table of ids"},
        {{.vocab = "{\"a\":NaN}"}, "not JSON"},
        {{.vocab = "{\"a\":1.5}"}, "no table of ids"},
        {{.vocab = "{\"a\":true}"}, "no table of ids"},
        {{.vocab = "{\"a\":[]}"}, "no table of ids"},
        {{.vocab = "[[\"a\",NaN]]"}, "not JSON"},
        {{.vocab = "[[\"a\",-1e999]]"}, "out of range"},
        {{.vocab = "[" + repeated("[\"a\",-1.5]", kMany, ",") + "]"}, "no table of ids"},
        {{.vocab = repeated("[", kMany, "")}, "nested deeper"},
        {{.vocab = "{\"a\":" + repeated("{\"a\":", kMany, "")}, "nested deeper"},
        {{.vocab = R"({"<0x-1>":0,"<0x-0>":1,"<0xFFF>":2,"<0x>":3,"<0x 1>":4,"<0x0A":5})",
          .merges = "[]",
          .more = R"(,"byte_fallback":true)"},
         ""},
        {{.vocab = R"({"a":0,"<0x61>":1,"b":2,"ab":3})", .more = R"(,"byte_fallback":true)"}, ""},
        {{.more = R"(,"vocab":{"a":0})"}, "duplicate key 'vocab'"},
        {{.more = R"(,"merges":[])"}, "duplicate key 'merges'"},
        {{.more = R"(},"model":{"type":"BPE")"}, "duplicate key 'model'"},
        {{.more = R"(,"unk_token":"a","fuse_unk":true,"ignore_merges":true)"}, ""},
        {{.more = R"(,"unk_token":")" + long_text + "\""}, "is no token"},
        {{.more = R"(,"byte_fallback":")" + long_text + "\""}, "is no boolean"},
        {{.more = R"(,"byte_fallback":")" + huge + "\""}, "more than 16 MB"},
        {{.more = ",\"" + long_text + "\":1"}, ""},
        {{.more = ",\"" + huge + "\":1"}, "more than 16 MB"},
        {{.more = ",\"x\":[" + repeated("{}", 500'000, ",") + "]"}, ""},
        {{.more = ",\"x\":{" + numbered(500'000, "\"", "\":1") + "}"}, ""},
        {{.more = ",\"x\":[" + repeated("\"\"", 700'000, ",") + "]"}, "more than 600000 values"},
    };
    for (const auto& [parts, says] : cases) {
        const std::string message = problem(parts);
        EXPECT_EQ(message.empty(), says.empty()) << message;
        EXPECT_NE(message.find(says), message.npos) << message << " | " << says;
    }
    EXPECT_NE(problem("65 MB", std::string(65 << 20, ' ')).find("larger than 64 MB"),
              std::string::npos);
    EXPECT_GE(bounded_.cases(), 36u);
}

TEST_F(TokenizerHostile, Merges) {
    const std::string long_text(15'000'000, 'x'), huge(60'000'000, 'x');
    const std::pair<Parts, std::string> cases[] = {
        {{.merges = "[" + repeated("\"a b\"", kMany, ",") + "]"}, ""},
        {{.merges = "[" + repeated("\"a b\"", 3'000'000, ",") + "]"}, "more than 2097152 merges"},
        {{.merges = "[" + repeated("[\"a\",\"b\"]", kMany, ",") + "]"}, ""},
        {{.merges = "[" + numbered(kMany, "\"a ", "\"") + "]"}, "is no token"},
        {{.merges = "[\"" + long_text + " b\"]"}, "more than 65536 bytes"},
        {{.merges = "[\"a " + long_text + "\"]"}, "more than 65536 bytes"},
        {{.merges = "[\"a " + huge + "\"]"}, "more than 16 MB"},
        {{.merges = "[\"" + repeated(" ", 1'000'000, "") + "\"]"}, "no pair of tokens"},
        {{.merges = "[" + repeated("[", 60, "") + repeated("]", 60, "") + "]"}, "no pair"},
        {{.merges = "[" + repeated("[]", kMany, ",") + "]"}, "no pair"},
        {{.merges = R"(["a b","ab c"])"}, "which is no token"},
        {{.merges = R"(["c a"])"}, "which is no token"},
        {{.merges = R"(["ab ab"])"}, "which is no token"},
        {{.merges = R"([["a",""]])"}, "no pair of tokens"},
        {{.merges = R"(["a\u0000 b"])"}, "which is no token"},
        {{.merges = R"([1])"}, "no pair"},
        {{.merges = R"([null])"}, "no pair"},
        {{.merges = R"([{"a":"b"}])"}, "no pair"},
        {{.merges = R"([["a",["b"]]])"}, "no pair"},
        {{.merges = R"(["a b" "b a"])"}, "not JSON"},
        {{.merges = R"(["a b",])"}, "not JSON"},
    };
    for (const auto& [parts, says] : cases) {
        const std::string message = problem(parts);
        EXPECT_EQ(message.empty(), says.empty()) << message;
        EXPECT_NE(message.find(says), message.npos) << message << " | " << says;
    }
    EXPECT_EQ(problem("sums", sum(300), std::string(1 << 18, 'a')), "");
    EXPECT_GE(bounded_.cases(), 22u);
}

TEST_F(TokenizerHostile, AddedTokens) {
    std::string similar = "[";
    for (size_t i = 1; i < 255; ++i) {
        similar += (i > 1 ? "," : "") + std::string(R"({"content":")") + std::string(i, 'x') +
                   R"(y","id":)" + std::to_string(i + 2) + "}";
    }
    similar += "]";
    const std::string text(1 << 20, 'x'), spaces(1 << 20, ' ');
    const std::string many = "[" + numbered(70'000, R"({"content":"t)", R"(","id":5})") + "]";
    const std::string none;
    const std::tuple<Parts, std::string, std::string> cases[] = {
        {{.added = added(std::string(256, 'x'))}, text, none},
        {{.added = added(std::string(255, 'x') + "y")}, text, "cannot be found in time"},
        {{.added = similar}, text, "cannot be found in time"},
        {{.added = added(" ", R"(,"rstrip":true)")}, spaces, none},
        {{.added = added(" ", R"(,"lstrip":true)")}, spaces, none},
        {{.added = added(" ", R"(,"lstrip":true,"rstrip":true)")}, spaces, none},
        {{.added = added("x", R"(,"single_word":true)")}, text, none},
        {{.added = added(" ", R"(,"single_word":true,"lstrip":true)")}, spaces, none},
        {{.added = added("x", R"(,"rstrip":true)")}, "x" + spaces + "x", none},
        {{.added = added("x", R"(,"lstrip":true)")}, spaces + "x", none},
        {{.added = many}, text, "more than 65536 added tokens"},
        {{.added = "[" + numbered(60'000, R"({"content":"t)", R"(","id":5})") + "]"},
         text,
         "the id of another"},
        {{.added = added(std::string(15'000'000, 'x'))}, text, "is too long"},
        {{.added = added(std::string(60'000'000, 'x'))}, text, "more than 16 MB"},
        {{.added = added("x", R"(,"id":3)")}, text, "duplicate key 'id'"},
        {{.added = R"([{"content":"x","id":1e300}])"}, text, "is no count"},
        {{.added = R"([{"content":"x","id":-0.5}])"}, text, "is no count"},
        {{.added = R"([{"content":"x","id":1048575}])"}, "x", none},
        {{.added = R"([{"content":"x","id":1048576}])"}, "x", "is no count"},
        {{.added = R"([{"content":["x"],"id":3}])"}, "x", "is no string"},
        {{.added = R"([{"content":"x","id":null}])"}, "x", "is no count"},
        {{.added = R"([{"content":"x","id":0}])"}, "x", "the vocabulary says otherwise"},
        {{.added = R"([[]])"}, "x", "lacks 'content'"},
        {{.added = R"([null])"}, "x", "lacks 'content'"},
        {{.added = added("\\u0000")}, std::string(1000, '\0'), none},
        {{.added = added("x", R"(,"normalized":true)"),
          .normalizer = replace(R"({"String":"x"})", std::string(2000, 'y'))},
         "x",
         "too long when normalised"},
        {{.added = added("x", R"(,"normalized":true)"),
          .normalizer = replace(R"({"String":"x"})", "")},
         text,
         none},
        {{.added = added("x", R"(,"normalized":true)"),
          .normalizer = replace(R"({"Regex":"(x+x+)+y"})", "")},
         "x",
         none},
    };
    for (const auto& [parts, input, says] : cases) {
        const std::string message = problem(parts, input);
        EXPECT_EQ(message.empty(), says.empty()) << message;
        EXPECT_NE(message.find(says), message.npos) << message << " | " << says;
    }
    EXPECT_GE(bounded_.cases(), 28u);
}

// Patterns that take long, with a text on which they do.
TEST_F(TokenizerHostile, Patterns) {
    const std::string letters(300'000, 'a');
    size_t refused = 0;
    for (const char* regex : {"(a+)+$",
                              "(a|a)*b",
                              "(a|aa)+$",
                              "a*a*a*a*a*a*a*b$",
                              "(?:a?){60}a{60}b",
                              "(?=(a+)+$)a",
                              "((a*)*)*c",
                              "(a*)*c",
                              "(?:a+b?)+c",
                              "a*b",
                              "a+b",
                              ".*b",
                              ".*?b",
                              "\\\\p{L}+1",
                              "[^b]*b",
                              "(?=.*b)a",
                              "(?!.*b)a",
                              "(?<=a)a*b",
                              "(?:a{1,100}){1,100}b",
                              "(?i:A+)b",
                              "(?>a+)b",
                              "(?:(?:a)*)*b",
                              "(?:a|b|ab)*c",
                              "\\\\w+\\\\d",
                              "\\\\s*a*\\\\s*b",
                              "(?:a*?)*?b",
                              "(a{0,5}){0,50}b",
                              "(?:aa?)+b",
                              "\\\\ba+\\\\b1",
                              "[a-z&&[^b]]*b"}) {
        refused +=
            !problem(regex, Parts{.pre = split_by(regex)}.file(), letters + "!" + letters).empty();
        const Parts normalising = {.normalizer =
                                       replace(R"({"Regex":")" + std::string(regex) + "\"}", "z")};
        problem(regex, normalising.file(), letters);
        const Parts decoding = {
            .decoder = replace(R"({"Regex":")" + std::string(regex) + "\"}", "z"),
            .vocab = R"({"a":0,"b":1,"ab":2,")" + letters.substr(0, 60'000) + "\":3}"};
        problem(regex, decoding.file());
    }
    EXPECT_GE(refused, 20u);
    // Many words, each of which takes some time.
    const std::string twice = R"({"type":"Sequence","pretokenizers":[)" + split_by(".") + "," +
                              split_by("(?:a?){12}a{12}b") + "]}";
    problem("many words", Parts{.pre = twice}.file(), letters);
    for (const char* regex : {"", "|", "^", "$", "(?:)", "\\\\b", "(?=a)", "a*", "a??", "(?!)"}) {
        EXPECT_EQ(problem(regex, Parts{.pre = split_by(regex)}.file(), letters), "") << regex;
    }
    for (const std::string& part :
         {std::string("\\\\w"), std::string("\\\\b"), std::string("(a"), std::string("a{9}"),
          std::string("[a-z]"), std::string("(?:"), std::string("\\\\p{L}"), std::string("a|"),
          std::string("(?<=a)"), std::string("\\\\S")}) {
        const std::string regex = repeated(part, 16'000 / part.size(), "");
        problem(part, Parts{.pre = split_by(regex)}.file());
    }
    EXPECT_GE(bounded_.cases(), 111u);
}

TEST_F(TokenizerHostile, PartsThatGrow) {
    const std::string grow = replace(R"({"String":"a"})", "aaaaaaaaaaaaaaaa");
    const std::string huge(1'000'000, 'x'), text(1 << 18, 'a'), spaces(1 << 18, ' ');
    const std::string space = R"({"type":"Metaspace","replacement":")";
    const std::string bytes = R"({"type":"ByteLevel","add_prefix_space":true,"use_regex":false})";
    const std::tuple<Parts, std::string, std::string> cases[] = {
        {{.normalizer = grow}, text, ""},
        {{.normalizer = steps("normalizers", grow, 2)}, text, "bytes after normalisation"},
        {{.normalizer = steps("normalizers", grow, 30)}, "a", "bytes after normalisation"},
        {{.normalizer = replace(R"({"String":"a"})", huge)}, text, "bytes after normalisation"},
        {{.normalizer = R"({"type":"Prepend","prepend":")" + huge + "\"}"}, "a", "normalisation"},
        {{.normalizer = steps("normalizers", R"({"type":"NFKD"})", 33)}, text, "of more than 32"},
        {{.normalizer = steps("normalizers", R"({"type":"NFKD"})", 32)},
         repeated("\xEF\xB7\xBA", 3'000, ""),
         ""},
        {{.normalizer = steps("normalizers", R"({"type":"NFD"})", 500'000 / 3)}, "a", "of more"},
        {{.normalizer = replace(R"({"String":")" + std::string(1025, 'a') + "\"}", "b")},
         text,
         "of more than 1 KB"},
        {{.normalizer = replace(R"({"String":")" + std::string(1000, 'a') + "b\"}", "b")},
         text,
         ""},
        {{.normalizer = repeated(R"({"type":"Sequence","normalizers":[)", 40, "") + "]"},
         "a",
         "nested deeper"},
        {{.pre = space + huge + "\"}"}, spaces, "more than one character"},
        {{.pre = space + "ab\"}"}, spaces, "more than one character"},
        {{.pre = space + " \"}"}, spaces, ""},
        {{.pre = space + "\xE2\x96\x81\"}"}, spaces, ""},
        {{.pre = steps("pretokenizers", space + "\xE2\x96\x81\"}", 33)}, spaces, "of more than 32"},
        {{.pre = steps("pretokenizers", space + "\xE2\x96\x81\"}", 32)}, "a", ""},
        {{.pre = steps("pretokenizers", bytes, 2)}, "a", "after ByteLevel"},
        {{.pre = steps("pretokenizers", split_by("a"), 32)}, text.substr(0, 4096), ""},
        {{.pre = bytes}, text, ""},
        {{.decoder = grow}, "a", ""},
        {{.decoder = replace(R"({"String":"1"})", huge), .vocab = vocab_of(kMany), .merges = "[]"},
         "a",
         "after normalisation"},
        {{.decoder = replace(R"({"String":"1"})", std::string(5'000, 'x')),
          .vocab = vocab_of(std::min<size_t>(kMany, 200'000)),
          .merges = "[]"},
         "a",
         "tokens of more than 64 MB"},
        {{.decoder = steps("decoders", grow, 33)}, "a", "of more than 32"},
        {{.decoder = steps("decoders", grow, 32)}, "a", "after normalisation"},
        {{.pre =
              steps("pretokenizers",
                    R"({"type":"Sequence","pretokenizers":[)" + space + "\xE2\x96\x81\"}," +
                        R"({"type":"Split","pattern":{"String":"\u2581"},"behavior":"Isolated",)" +
                        R"("invert":false}]})",
                    15)},
         text,
         ""},
        {{.pre = R"({"type":"Sequence","pretokenizers":[)" +
                 repeated(R"({"type":"ByteLevel","add_prefix_space":true,"use_regex":false})", 9,
                          ",") +
                 "]}"},
         "a",
         "after ByteLevel"},
        {{.decoder = steps("decoders", R"({"type":"Fuse"})", 32),
          .vocab = R"({"a":0,"b":1,"ab":2,"c":1000000})"},
         "a",
         "32 steps for 1000001 tokens"},
        {{.decoder = R"({"type":"Strip","content":"a","start":1048575,"stop":1048575})"}, text, ""},
        {{.decoder = R"({"type":"Strip","content":")" + huge + R"(","start":1,"stop":1})"},
         "a",
         ""},
        {{.decoder = space + huge + "\"}"}, "a", "more than one character"},
        {{.post = R"({"type":"TemplateProcessing","single":[)" +
                  repeated(R"({"SpecialToken":{"id":"x"}})", 190'000, ",") +
                  R"(,{"Sequence":{"id":"A"}}],"special_tokens":{"x":{"ids":[0]}}})"},
         "a",
         ""},
        {{.post = R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},
            {"SpecialToken":{"id":"x"}},{"Sequence":{"id":"A"}}],"special_tokens":{"x":{"ids":[)" +
                  repeated("0", 500'000, ",") + "]}}}"},
         "a",
         ""},
        {{.post = repeated(R"({"type":"Sequence","processors":[)", 40, "") + "]"}, "a", "nested"},
    };
    for (const auto& [parts, input, says] : cases) {
        const std::string message = problem(parts, input);
        EXPECT_EQ(message.empty(), says.empty()) << message;
        EXPECT_NE(message.find(says), message.npos) << message << " | " << says;
    }
    EXPECT_GE(bounded_.cases(), 32u);
}

// Vocabularies with scores come from other files: pieces of the longest allowed length, odd scores.
TEST_F(TokenizerHostile, Scores) {
    const auto merge = [&](const char* name, size_t count, size_t length, float score) {
        return bounded_.error_of(name, [&] {
            Vocabulary vocabulary;
            std::vector<float> scores;
            for (size_t id = 0; id < count; ++id) {
                std::string text = std::to_string(id);
                text.resize(std::max(length, text.size()), 'a');
                vocabulary.add(text, int(id));
                scores.push_back(score);
            }
            Merges merges = merges_by_score(vocabulary, scores);
            const Bpe bpe(std::move(vocabulary), std::move(merges), {});
            Bpe::Scratch room;
            std::vector<int> ids;
            bpe.encode("1a2b3", room, ids);
        });
    };
    EXPECT_EQ(merge("one", 1, 1024, 0), "");
    EXPECT_EQ(merge("too long", 1, 1025, 0), "a token of more than 1,024 bytes");
    EXPECT_EQ(merge("many too long", 2'000, 1024, 0), "too many long tokens to find their merges");
    for (const float score : {0.0f, -0.0f, -1e38f, INFINITY, -INFINITY, float(NAN)}) {
        EXPECT_EQ(merge("odd scores", kMany / 5, 1, score), "") << score;
    }
    EXPECT_GE(bounded_.cases(), 9u);
}

}  // namespace
}  // namespace aerie
