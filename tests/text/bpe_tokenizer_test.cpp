// Tokenizers of tokenizer.json against the ids and texts of the library that defines the format.
#include "text/bpe_tokenizer.h"

#include <sentencepiece_processor.h>

#include <cmath>
#include <ctime>
#include <random>
#include <thread>

#include "core/utf8.h"
#include "io/damage.h"
#include "io/input_file.h"
#include "io/json.h"
#include "paths.h"
#include "rounds.h"
#include "text/write_model.h"

namespace aerie {
namespace {

using test::error_of;

std::string data(const std::string& name) {
    return read_text(test::test_data_dir() / "tokenizers" / name, size_t(8) << 20);
}

const Json& golden() {
    static const Json json = Json::parse(data("tokens.json"), "tokens.json");
    return json;
}

std::vector<int> ids_of(const Json& ids) {
    std::vector<int> out;
    for (const Json& id : *ids.array()) out.push_back(int(id.number()));
    return out;
}

const BpeTokenizer& tokenizer(const std::string& name) {
    static std::map<std::string, BpeTokenizer> read;
    const auto found = read.find(name);
    if (found != read.end()) return found->second;
    return read.emplace(name, BpeTokenizer::from_json(data(name + ".json"), name)).first->second;
}

const char* const kNames[] = {"gpt2",  "llama3",    "qwen2",       "deepseek",
                              "o200k", "llama2-sp", "metaspace-sp"};

class GoldenTokens : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTokens, EncodesAndDecodesAsTheLibrary) {
    const BpeTokenizer& own = tokenizer(GetParam());
    size_t strings = 0, lists = 0;
    for (const Json& entry : *golden().find(GetParam())->find("strings")->array()) {
        const std::string& text = *entry.find("text")->string();
        const std::vector<int> whole = ids_of(*entry.find("ids_special"));
        EXPECT_EQ(own.encode(text), ids_of(*entry.find("ids"))) << testing::PrintToString(text);
        EXPECT_EQ(own.encode_whole(text), whole) << testing::PrintToString(text);
        const std::string& decoded = *entry.find("decoded")->string();
        const Json* skipped = entry.find("decoded_skip");
        EXPECT_EQ(own.decode(whole, false), decoded);
        EXPECT_EQ(own.decode(whole, true), skipped ? *skipped->string() : decoded);
        ++strings;
    }
    for (const Json& entry : *golden().find(GetParam())->find("decode")->array()) {
        const std::vector<int> ids = ids_of(*entry.find("ids"));
        EXPECT_EQ(own.decode(ids, false), *entry.find("decoded")->string());
        EXPECT_EQ(own.decode(ids, true), *entry.find("decoded_skip")->string());
        ++lists;
    }
    EXPECT_GE(strings, 60u);
    EXPECT_GE(lists, 10u);
    std::printf("%s: %zu strings, %zu lists of ids\n", GetParam(), strings, lists);
}

// The bytes of a stream of tokens are the text of decode() if they are whole characters.
TEST_P(GoldenTokens, BytesOfTokensAreTheText) {
    const BpeTokenizer& own = tokenizer(GetParam());
    size_t compared = 0;
    for (const Json& entry : *golden().find(GetParam())->find("strings")->array()) {
        std::string bytes;
        const std::vector<int> ids = ids_of(*entry.find("ids"));
        for (const int id : ids) bytes += own.bytes(id);
        if (own.drops_leading_space() && bytes.starts_with(' ')) bytes.erase(0, 1);
        if (!is_utf8(bytes)) continue;
        EXPECT_EQ(bytes, own.decode(ids, true));
        ++compared;
    }
    EXPECT_GE(compared, 60u);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTokens, testing::ValuesIn(kNames), [](const auto& info) {
    std::string name = info.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

// The same engine with scores in place of merges: the pieces of a tokenizer.model, against
// SentencePiece.
TEST(BpeScores, EncodeAsSentencePiece) {
    const std::filesystem::path path = test::models_dir() / "aerie-tiny" / "tokenizer.model";
    sentencepiece::SentencePieceProcessor library;
    ASSERT_TRUE(library.Load(path.string()).ok());
    Vocabulary vocabulary;
    std::vector<float> scores;
    for (int id = 0; id < library.GetPieceSize(); ++id) {
        const bool plain = !library.IsControl(id) && !library.IsByte(id) && !library.IsUnknown(id);
        vocabulary.add(library.IdToPiece(id), id);
        scores.push_back(plain ? library.GetScore(id) : NAN);
    }
    Merges merges = merges_by_score(vocabulary, scores);
    const BpeRules rules{.byte_fallback = true, .fuse_unknown = true, .unknown = library.unk_id()};
    const BpeTokenizer own(
        BpeTokenizer::Parts{.file = "pieces",
                            .bpe = Bpe(std::move(vocabulary), std::move(merges), rules),
                            .normaliser = Normaliser({Normaliser::Prepend{"\xE2\x96\x81"},
                                                      Normaliser::Replace{" ", "\xE2\x96\x81"}})});
    size_t compared = 0;
    for (const char* name : kNames) {
        for (const Json& entry : *golden().find(name)->find("strings")->array()) {
            const std::string& text = *entry.find("text")->string();
            // SentencePiece takes neither its own marks nor NUL for characters.
            if (text.find("\xE2\x96\x85") != text.npos || text.find('\0') != text.npos) continue;
            std::vector<int> ids;
            ASSERT_TRUE(library.Encode(text, &ids).ok());
            EXPECT_EQ(own.encode(text), ids) << testing::PrintToString(text);
            ++compared;
        }
    }
    EXPECT_GE(compared, 500u);
}

// UNUSED pieces are joined and then taken apart again.
TEST(BpeScores, UnusedPiecesEncodeAsSentencePiece) {
    const std::vector<test::Piece> pieces = {{"\xE2\x96\x81", -90},
                                             {"a", -91},
                                             {"b", -92},
                                             {"c", -93, test::kUnused},
                                             {"ab", -1, test::kUnused},
                                             {"bc", -2},
                                             {"abc", -3},
                                             {"cc", -4},
                                             {"ccb", -5, test::kUnused},
                                             {"abab", -6, test::kUnused},
                                             {"aa", -7, test::kUnused},
                                             {"aaaa", -8},
                                             {"ba", -9, test::kUnused}};
    sentencepiece::SentencePieceProcessor library;
    ASSERT_TRUE(library.LoadFromSerializedProto(test::ModelWriter{.pieces = pieces}.file()).ok());
    Vocabulary vocabulary;
    std::vector<float> scores;
    std::vector<bool> unused;
    for (int id = 0; id < library.GetPieceSize(); ++id) {
        const bool joins = !library.IsControl(id) && !library.IsByte(id) && !library.IsUnknown(id);
        vocabulary.add(library.IdToPiece(id), id);
        scores.push_back(joins ? library.GetScore(id) : NAN);
        unused.push_back(library.IsUnused(id));
    }
    ASSERT_EQ(std::count(unused.begin(), unused.end(), true), 6);
    Merges merges = merges_by_score(vocabulary, scores);
    const BpeRules rules{.byte_fallback = true, .fuse_unknown = true, .unknown = library.unk_id()};
    const Bpe own(std::move(vocabulary), std::move(merges), rules, unused);
    Bpe::Scratch room;
    std::mt19937 random(4);
    size_t taken_apart = 0;
    const int rounds = test::rounds(20'000);
    for (int round = 0; round < rounds; ++round) {
        std::string text, spelled = "\xE2\x96\x81";
        for (size_t i = 1 + random() % 24; i > 0; --i) {
            const char letter = "aaabbbcd"[random() % 8];
            text += letter;
            spelled += letter;
        }
        std::vector<int> ids, expected;
        ASSERT_TRUE(library.Encode(text, &expected).ok());
        own.encode(spelled, room, ids);
        ASSERT_EQ(ids, expected) << text;
        taken_apart += text.find("ab") != text.npos;
    }
    EXPECT_GE(taken_apart, size_t(rounds / 2));
}

// With equal scores the leftmost pair joins, whatever the ids are.
TEST(BpeScores, EqualScoresJoinFromTheLeft) {
    Vocabulary vocabulary;
    const char* const pieces[] = {"a", "b", "c", "bc", "ab"};
    for (int id = 0; id < 5; ++id) vocabulary.add(pieces[id], id);
    const float scores[] = {-9, -9, -9, -1, -1};
    Merges merges = merges_by_score(vocabulary, scores);
    const Bpe bpe(std::move(vocabulary), std::move(merges), {});
    Bpe::Scratch room;
    std::vector<int> ids;
    bpe.encode("abc", room, ids);
    EXPECT_EQ(ids, (std::vector<int>{4, 2}));
}

TEST(BpeTokenizer, RecognisesWhatItIsTold) {
    const BpeTokenizer& own = tokenizer("llama3");
    const std::string text = "a<|eot_id|>b<|both|>";
    const int special = own.id_of("<|eot_id|>"), plain = own.id_of("<|both|>");
    ASSERT_TRUE(own.is_special(special));
    ASSERT_FALSE(own.is_special(plain));
    const auto has = [](const std::vector<int>& ids, int id) {
        return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    for (const Recognised recognised :
         {Recognised::all, Recognised::not_special, Recognised::none}) {
        const std::vector<int> ids = own.encode(text, recognised);
        EXPECT_EQ(has(ids, special), recognised == Recognised::all);
        EXPECT_EQ(has(ids, plain), recognised != Recognised::none);
        EXPECT_EQ(own.decode(ids, false), text);
    }
    EXPECT_EQ(own.bytes(special), "");
    EXPECT_EQ(own.bytes(plain), "<|both|>");
    EXPECT_EQ(own.text(special), "<|eot_id|>");
    for (const int id : {-1, own.size(), INT_MAX}) {
        EXPECT_EQ(own.bytes(id), "");
        EXPECT_EQ(own.text(id), "");
    }
    EXPECT_EQ(own.decode({-1, own.size(), 32, INT_MIN}, false), own.decode({32}, false));
    EXPECT_EQ(own.encode("a\xFFz"), own.encode("a\xEF\xBF\xBDz"));
}

// One tokenizer serves many threads.
TEST(BpeTokenizer, IsSharedByThreads) {
    const BpeTokenizer& own = tokenizer("qwen2");
    const std::string text = read_text(test::test_data_dir() / "valid.txt", 1 << 20);
    const std::vector<int> ids = own.encode(text);
    std::vector<std::thread> threads;
    std::vector<int> same(4);
    for (int& each : same) threads.emplace_back([&] { each = own.encode(text) == ids; });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(same, std::vector<int>(4, 1));
}

#ifdef __SANITIZE_ADDRESS__
constexpr size_t kRun = 1 << 15;
#else
constexpr size_t kRun = 1 << 20;
#endif

// A megabyte of one kind of character, as one word or many, takes at most a second of processor
// time.
TEST(BpeTokenizer, LongRunsTakeNoTime) {
    for (const char* name : kNames) {
        const BpeTokenizer& own = tokenizer(name);
        for (const std::string unit :
             {"a", " ", "\n", "7", "=", "A", "ab", "\t", "\xE4\xB8\xAD", "\xCC\x81", "e\xCC\x81",
              "\xCC\x81\xCC\xA3", "\xF0\x9F\x98\x80", " a", "\r\n", "'", "\xE2\x96\x81", "Aa"}) {
            std::string text;
            while (text.size() < kRun) text += unit;
            const std::clock_t start = std::clock();
            const std::vector<int> ids = own.encode(text);
            const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
            EXPECT_LE(seconds, 1.0) << name << " " << testing::PrintToString(unit);
            EXPECT_FALSE(ids.empty());
        }
    }
}

}  // namespace
}  // namespace aerie
