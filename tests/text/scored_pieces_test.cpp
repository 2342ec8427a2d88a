// SentencePiece models: bad ones are refused, and the others give SentencePiece's ids.
#include <sentencepiece_processor.h>

#include <limits>

#include "io/damage.h"
#include "text/tokenizer.h"
#include "text/write_model.h"

namespace aerie {
namespace {

using test::bytes_field;
using test::error_of;
using test::ModelWriter;
using test::Piece;
using test::varint_field;

std::string problem(const std::string& model) {
    return error_of([&] { Tokenizer::from_bytes(model, "tokenizer.model"); });
}
std::string problem_with(const Piece& piece) {
    return problem(ModelWriter{.pieces = {piece}}.file());
}
// Loads and uses a model.
void use(const std::string& model) {
    const Tokenizer tokenizer = Tokenizer::from_bytes(model, "tokenizer.model");
    tokenizer.decode(tokenizer.encode("a aa \xC3\xA9 <s> \n"));
}

TEST(SentencePieces, HaveTheLibrarysIds) {
    for (const bool byte_fallback : {false, true})
        for (const int prepends : {0, 1})
            for (const int removes : {0, 1}) {
                const ModelWriter model{.pieces = {{"a", -1},
                                                   {"b", -1},
                                                   {"\xE2\x96\x81", -4},
                                                   {"aa", -2},
                                                   {"\xE2\x96\x81"
                                                    "a",
                                                    -3},
                                                   {"\xC3\xA9", -5},
                                                   {"ab", -1, test::kControl}},
                                        .byte_fallback = byte_fallback,
                                        .normalizer = varint_field(3, uint64_t(prepends)) +
                                                      varint_field(4, uint64_t(removes))};
                sentencepiece::SentencePieceProcessor library;
                ASSERT_TRUE(library.LoadFromSerializedProto(model.file()).ok());
                const Tokenizer own = Tokenizer::from_bytes(model.file(), "m");
                for (const char* text : {"", " ", "a", " a", "a ", "  aa  a ", "aaaa aaa", "xyz",
                                         "a\xC3\xA9q", "ab", "\n\n", " \t ", "aab b  "}) {
                    std::vector<int> ids;
                    ASSERT_TRUE(library.Encode(text, &ids).ok());
                    EXPECT_EQ(own.encode(text), ids)
                        << testing::PrintToString(text) << " fallback " << byte_fallback
                        << " prepends " << prepends << " removes " << removes;
                }
            }
}

TEST(SentencePieces, RefusesBadPieces) {
    EXPECT_EQ(problem_with({""}), "tokenizer.model: empty piece");
    EXPECT_EQ(problem_with({"<s>"}), "tokenizer.model: piece '<s>' is there twice");
    EXPECT_EQ(problem_with({"\xFF"}), "tokenizer.model: piece '\xEF\xBF\xBD' is no UTF-8 text");
    EXPECT_NE(problem_with({std::string("a\0b", 3)}), "");
    EXPECT_NE(problem_with({std::string(1025, 'a')}), "");
    EXPECT_EQ(problem_with({std::string(1024, 'a')}), "");
    for (const float score :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
        EXPECT_EQ(problem_with({"a", score}), "tokenizer.model: piece 'a' has no finite score");
    }
    for (const int kind : {0, 7, 1000}) {
        EXPECT_EQ(problem_with({"a", 0, kind}), "tokenizer.model: piece of an unknown type");
    }
    EXPECT_EQ(problem_with({"x", 0, test::kUnknown}),
              "tokenizer.model: 2 unknown pieces, expected one");
    EXPECT_EQ(problem(varint_field(9, 1)), "tokenizer.model: no pieces");
    EXPECT_EQ(problem(test::piece_field({"a"})), "tokenizer.model: 0 unknown pieces, expected one");
}

// llama.cpp#27226: "<0x-1>" became an index of -1.
TEST(SentencePieces, RefusesBadBytePieces) {
    for (const char* text :
         {"<0x-1>", "<0xGG>", "<0x0a>", "<0x100>", "<0x>", "x", "<0x0A", "0x0A>>"}) {
        EXPECT_NE(problem_with({text, 0, test::kByte}).find("expected one like"), std::string::npos)
            << text;
    }
    EXPECT_NE(
        problem(ModelWriter{.pieces = {{"<0x0A>", 0, test::kByte}}, .byte_fallback = false}.file()),
        "");
    std::string model = ModelWriter().file();
    model[model.find("<0x0A>") + 4] = 'B';
    EXPECT_EQ(problem(model), "tokenizer.model: piece '<0x0B>' is there twice");
    EXPECT_NE(problem(test::piece_field({"<unk>", 0, test::kUnknown}) +
                      bytes_field(2, varint_field(35, 1))),
              "");
}

TEST(SentencePieces, RefusesOtherModelsAndMaps) {
    for (const int type : {0, 1, 3, 4, 100}) {
        EXPECT_EQ(problem(ModelWriter{.model_type = type}.file()),
                  "tokenizer.model: no BPE model; others are not supported");
    }
    EXPECT_EQ(problem(ModelWriter{.normalizer = bytes_field(2, "map")}.file()),
              "tokenizer.model: a normalisation map is not supported");
    EXPECT_EQ(problem(ModelWriter{.extra = bytes_field(5, bytes_field(2, "map"))}.file()),
              "tokenizer.model: a normalisation map is not supported");
    EXPECT_NE(problem(ModelWriter{.trainer = varint_field(24, 1)}.file()), "");
    for (const uint64_t id : {uint64_t(1) << 20, uint64_t(259), uint64_t(-2)}) {
        EXPECT_NE(problem(ModelWriter{.trainer = varint_field(41, id)}.file()), "") << id;
    }
    EXPECT_EQ(problem(ModelWriter{.trainer = varint_field(43, uint64_t(-1))}.file()), "");
}

TEST(SentencePieces, RefusesMalformedProtobuf) {
    const std::string good = ModelWriter().file();
    for (const std::string& extra :
         {std::string("\x0A"), std::string("\x0A\x7F"), std::string("\x0B"), std::string("\x0C"),
          std::string("\x0E"), std::string("\x00\x00", 2), std::string(11, '\xFF'),
          std::string("\xFA\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02"), varint_field(1, 5),
          std::string("\x0D"
                      "1234"),
          bytes_field(2, ""), bytes_field(3, "\x12"),
          bytes_field(1, bytes_field(1, "a") + bytes_field(1, "b")),
          bytes_field(1, varint_field(1, 3)),
          bytes_field(1, bytes_field(1, "z") + varint_field(2, 3))}) {
        EXPECT_NE(problem(good + extra), "") << testing::PrintToString(extra);
    }
    EXPECT_EQ(problem(good + varint_field(77, 1) + bytes_field(200, "extension")), "");
    EXPECT_NE(problem(std::string((16 << 20) + 1, '\0')), "");
}

TEST(SentencePieces, SurvivesDamage) {
    const ModelWriter model{.pieces = {{"a", -1}, {"aa", -2}, {"<x>", 0, test::kUserDefined}},
                            .byte_fallback = false};
    test::expect_survives_damage(model.file(), use);
}

}  // namespace
}  // namespace aerie
