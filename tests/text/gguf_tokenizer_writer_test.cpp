// Tokenizers become GGUF metadata and are read back: they give the same ids.
#include "text/gguf_tokenizer_writer.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "io/damage.h"
#include "io/input_file.h"
#include "paths.h"
#include "text/gguf_tokenizer.h"
#include "text/small_tokenizers.h"

namespace aerie {
namespace {

TokenizerSource source_of(const std::string& name) {
    TokenizerSource source;
    source.path = test::test_data_dir() / "tokenizers" / (name + ".json");
    source.file = name;
    return source;
}

struct Described {
    GgufMetadata metadata{"out.gguf"};
    std::vector<std::string> warnings;
};

Described described(const TokenizerSource& source, const Tokenizer& tokenizer, int vocab) {
    Described made;
    made.warnings = describe_tokenizer(source, tokenizer, vocab, {}, made.metadata);
    return made;
}

// Added tokens may take the space beside them or need to stand alone, which GGUF cannot say.
bool has_added_token(const BpeTokenizer& bpe, const std::string& text) {
    for (const AddedToken& token : bpe.parts().added.tokens())
        if (text.find(token.text) != text.npos) return true;
    return false;
}

class DescribedGolden : public testing::TestWithParam<const char*> {};

TEST_P(DescribedGolden, ReadsBackAsItself) {
    const TokenizerSource source = source_of(GetParam());
    const Tokenizer tokenizer = Tokenizer::load(source);
    const int vocab = tokenizer.size() + 100;
    const Described made = described(source, tokenizer, vocab);
    EXPECT_EQ(int(made.metadata.strings("tokenizer.ggml.tokens").size()), vocab);
    const GgufTokenizer back = gguf_tokenizer(made.metadata);
    const std::string path = (test::test_data_dir() / "tokenizers" / "tokens.json").string();
    const Json golden = Json::parse(read_text(path, size_t(8) << 20), path);
    const bool minds_spaces = !made.warnings.empty() && std::string(GetParam()) == "metaspace-sp";
    int strings = 0;
    for (const Json& entry : *golden.find(GetParam())->find("strings")->array()) {
        const std::string& text = *entry.find("text")->string();
        const std::vector<int> ids = tokenizer.encode_from_start(text, Recognised::all);
        if (has_added_token(tokenizer.bpe(), text)) continue;
        if (minds_spaces && (text.starts_with(' ') || text.starts_with("\xE2\x96\x81"))) continue;
        EXPECT_EQ(back.bpe.encode_whole(text), ids) << testing::PrintToString(text);
        EXPECT_EQ(back.bpe.decode(ids, true), tokenizer.bpe().decode(ids, true));
        ++strings;
    }
    EXPECT_GE(strings, 40);
    for (int id = 0; id < tokenizer.size(); ++id)
        EXPECT_EQ(back.bpe.is_special(id), tokenizer.bpe().is_special(id)) << id;
}

INSTANTIATE_TEST_SUITE_P(Golden, DescribedGolden,
                         testing::Values("gpt2", "llama3", "qwen2", "deepseek", "o200k",
                                         "llama2-sp", "metaspace-sp"),
                         [](const auto& info) {
                             std::string name = info.param;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

TEST(DescribedTokenizer, SaysWhereASpaceAtTheBeginIsLost) {
    const TokenizerSource source = source_of("metaspace-sp");
    const Described made = described(source, Tokenizer::load(source), 0);
    ASSERT_FALSE(made.warnings.empty());
    EXPECT_NE(made.warnings[0].find("begin of a text"), std::string::npos);
}

TEST(DescribedTokenizer, IsRefusedWhereNothingCutsSo) {
    const test::TestFolder folder;
    TokenizerSource source;
    source.path = folder.write("tokenizer.json", test::small_byte_level_json());
    source.file = "small";
    const Tokenizer tokenizer = Tokenizer::load(source);
    EXPECT_EQ(test::error_of([&] { described(source, tokenizer, 0); }),
              "small: GGUF has no name that we know for how this tokenizer cuts a text");
}

// The scores of a tokenizer.model are kept.
TEST(DescribedTokenizer, KeepsTheScoresOfPieces) {
    const TokenizerSource source = find_tokenizer(test::models_dir() / "aerie-tiny");
    const Tokenizer tokenizer = Tokenizer::load(source);
    const int ends[] = {tokenizer.eos(), 77, 78};
    GgufMetadata metadata("out.gguf");
    EXPECT_TRUE(describe_tokenizer(source, tokenizer, 4096, ends, metadata).empty());
    EXPECT_EQ(metadata.integer("tokenizer.ggml.eos_token_id"), tokenizer.eos());
    EXPECT_EQ(metadata.integer("tokenizer.ggml.eot_token_id"), 77);
    EXPECT_EQ(metadata.integer("tokenizer.ggml.eom_token_id"), 78);
    EXPECT_EQ(metadata.string("tokenizer.chat_template"), tokenizer.chat_template().text);
    const GgufTokenizer back = gguf_tokenizer(metadata);
    for (const char* text : {"", " ", "a  b", "  The river\n\tfl\xC3\xB6w", "\xF0\x9F\x8C\x8A!"})
        EXPECT_EQ(back.bpe.encode_whole(text), tokenizer.encode_from_start(text)) << text;
}

}  // namespace
}  // namespace aerie
