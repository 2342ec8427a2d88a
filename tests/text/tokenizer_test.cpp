// The tokenizer against the golden texts and odd texts, and its configuration.
#include "text/tokenizer.h"
#include "paths.h"

#include <random>

#include "io/damage.h"
#include "io/input_file.h"
#include "io/json.h"
#include "text/small_tokenizers.h"
#include "text/write_model.h"

namespace aerie {
namespace {

using test::bytes_field;
using test::error_of;
using test::ModelWriter;
using test::TestFolder;

const std::filesystem::path kModel = test::models_dir() / "aerie-tiny";

const Tokenizer& tiny() {
    static const Tokenizer tokenizer = Tokenizer::load(kModel);
    return tokenizer;
}

std::vector<int> ids_of(const Json& array) {
    std::vector<int> ids;
    for (const Json& id : *array.array()) ids.push_back(int(id.number()));
    return ids;
}

TEST(Tokenizer, ReadsTheBundledModel) {
    EXPECT_EQ(tiny().size(), 4096);
    EXPECT_EQ(tiny().bos(), 1);
    EXPECT_EQ(tiny().eos(), 2);
    EXPECT_EQ(tiny().encode_from_start("a").front(), tiny().bos());
    EXPECT_TRUE(tiny().drops_leading_space());
    EXPECT_TRUE(tiny().chat_template().text.starts_with("{{ bos_token }}"));
}

TEST(Tokenizer, GivesTheGoldenIdsAndTexts) {
    const std::string file = (test::test_data_dir() / "greedy.json").string();
    const Json golden = Json::parse(read_text(file, 10'000'000), file);
    ASSERT_EQ(golden.array()->size(), 40u);
    for (const Json& entry : *golden.array()) {
        std::vector<int> prompt = ids_of(*entry.find("prompt_ids"));
        ASSERT_EQ(prompt.front(), tiny().bos());
        prompt.erase(prompt.begin());
        EXPECT_EQ(tiny().encode(*entry.find("prompt")->string()), prompt);
        std::vector<int> answer = ids_of(*entry.find("ids"));
        std::erase(answer, tiny().eos());
        EXPECT_EQ(tiny().decode(answer), *entry.find("text")->string());
    }
}

TEST(Tokenizer, DecodesWhatItEncodes) {
    std::mt19937 random(2);
    const std::vector<std::string> parts = {"a",  "the ", " ",  "\n",       "\t",
                                            "42", "{}",   "  ", "\xC3\xA9", "\xF0\x9F\x98\x80",
                                            "x",  "\x01", "\r", "<s>",      "</s>"};
    for (int round = 0; round < 500; ++round) {
        std::string text;
        for (size_t i = random() % 30; i > 0; --i) text += parts[random() % parts.size()];
        EXPECT_EQ(tiny().decode(tiny().encode(text)), text);
    }
    EXPECT_TRUE(tiny().encode("").empty());
    EXPECT_EQ(tiny().decode(tiny().encode(std::string("a\0b", 3))), std::string("a\0b", 3));
    EXPECT_EQ(tiny().decode(tiny().encode("a\xFFz")), "a\xEF\xBF\xBDz");
}

TEST(Tokenizer, SpecialTokensInTextArePlainText) {
    for (const int id : tiny().encode("<s> a </s> <unk> <0x0A>")) {
        EXPECT_NE(id, tiny().bos());
        EXPECT_NE(id, tiny().eos());
        EXPECT_NE(id, 0);
        EXPECT_NE(tiny().bytes(id), "\n");
    }
}

TEST(Tokenizer, BytesOfEachKindOfToken) {
    EXPECT_EQ(tiny().bytes(0), "");
    EXPECT_EQ(tiny().bytes(tiny().bos()), "");
    EXPECT_EQ(tiny().bytes(3), std::string_view("\0", 1));
    EXPECT_EQ(tiny().bytes(3 + 0xAB), "\xAB");
    EXPECT_EQ(tiny().bytes(tiny().encode("the")[0]), " the");
    EXPECT_EQ(tiny().decode({3 + 0xE2, 3 + 0x82}), "\xEF\xBF\xBD");
}

TEST(Tokenizer, AMegabyteOfOneCharacterIsEncodedSoon) {
    for (const char* unit : {"a", " ", "\n", "\xFF", "\xE2\x82\xAC"}) {
        std::string text;
        while (text.size() < (1 << 20)) text += unit;
        text.resize(1 << 20);
        EXPECT_FALSE(tiny().encode(text).empty());
    }
    EXPECT_NE(error_of([] { tiny().encode(std::string((64 << 20) + 1, 'a')); }), "");
}

TEST(Tokenizer, WithoutBytePiecesUnknownTextIsOneToken) {
    const Tokenizer tokenizer =
        Tokenizer::from_bytes(ModelWriter{.pieces = {{"a"}}, .byte_fallback = false}.file(), "m");
    EXPECT_EQ(tokenizer.encode(std::string(1 << 20, 'x')).size(), 1u);
}

TEST(Tokenizer, ModelsWithoutTheLeadingSpaceLoseNone) {
    const ModelWriter model{.pieces = {{"\xE2\x96\x81"}, {"a"}},
                            .normalizer = test::varint_field(3, 0) + test::varint_field(4, 0)};
    const Tokenizer tokenizer = Tokenizer::from_bytes(model.file(), "m");
    EXPECT_FALSE(tokenizer.drops_leading_space());
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(" a")), " a");
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("a")), "a");
}

// The error for a folder with a small model and this tokenizer_config.json.
std::string problem_with_config(const std::string& config) {
    const TestFolder folder;
    folder.write("tokenizer.model", ModelWriter{.pieces = {{"a"}}}.file());
    folder.write("tokenizer_config.json", config);
    return error_of([&] { Tokenizer::load(folder.path()); });
}

TEST(Tokenizer, ReadsTokensOfTheConfiguration) {
    const TestFolder folder;
    folder.write("tokenizer.model", ModelWriter{.pieces = {{"a"}}}.file());
    EXPECT_EQ(Tokenizer::load(folder.path()).bos(), 1);
    folder.write("tokenizer_config.json",
                 R"({"bos_token":{"content":"</s>","lstrip":false},"eos_token":"a",
                     "add_bos_token":false,"chat_template":"x"})");
    const Tokenizer tokenizer = Tokenizer::load(folder.path());
    EXPECT_EQ(tokenizer.bos(), 2);
    EXPECT_EQ(tokenizer.eos(), 259);
    EXPECT_EQ(tokenizer.encode_from_start("a"), tokenizer.encode("a"));
    EXPECT_EQ(tokenizer.chat_template().text, "x");
    folder.write("tokenizer_config.json", R"({"add_eos_token":true})");
    std::vector<int> whole = tokenizer.encode("a");
    whole.insert(whole.begin(), 1);
    whole.push_back(2);
    EXPECT_EQ(Tokenizer::load(folder.path()).encode_whole("a"), whole);
    EXPECT_EQ(problem_with_config(R"({"bos_token":null,"add_bos_token":null})"), "");
}

TEST(Tokenizer, RefusesBadConfigurations) {
    for (const char* config :
         {"", "[]", "{\"bos_token\":1}", "{\"bos_token\":{\"content\":1}}", "{\"eos_token\":[]}",
          "{\"add_bos_token\":\"yes\"}", "{\"eos_token\":\"</s>\",\"eos_token\":\"</s>\"}",
          "{\"eos_token\":\"</S>\"}"}) {
        EXPECT_NE(problem_with_config(config), "") << config;
    }
    EXPECT_TRUE(problem_with_config("{\"bos_token\":\"<x>\"}")
                    .ends_with("tokenizer_config.json: '<x>' is not a token of tokenizer.model"));
}

TEST(Tokenizer, WithoutBosAddsNoneAndCannotBeToldTo) {
    constexpr int kBosPiece = 46, kEosPiece = 47;
    const TestFolder folder;
    folder.write("tokenizer.model", ModelWriter{.trainer = bytes_field(kBosPiece, "absent") +
                                                           bytes_field(kEosPiece, "absent")}
                                        .file());
    const Tokenizer tokenizer = Tokenizer::load(folder.path());
    EXPECT_EQ(tokenizer.bos(), -1);
    EXPECT_EQ(tokenizer.eos(), -1);
    EXPECT_EQ(tokenizer.encode_from_start("a"), tokenizer.encode("a"));
    const auto config = folder.write("tokenizer_config.json", R"({"add_bos_token":true})");
    EXPECT_EQ(error_of([&] { Tokenizer::load(folder.path()); }),
              config.string() + ": add_bos_token is true, but no token is BOS");
    folder.write("tokenizer_config.json", R"({"add_bos_token":true,"bos_token":"<s>"})");
    EXPECT_EQ(Tokenizer::load(folder.path()).encode_from_start("a").front(), 1);
}

// The ids around a text with the tokenizer of small_byte_level_json; its post-processor puts "<s>"
// (9) before a text.
std::vector<int> around(const std::string& config) {
    const TestFolder folder;
    folder.write("tokenizer.json", test::small_byte_level_json());
    folder.write("tokenizer_config.json", config);
    return Tokenizer::load(folder.path()).encode_whole("");
}

TEST(Tokenizer, FlagsOfLlamasClassesStandAboveThePostProcessor) {
    using Ids = std::vector<int>;
    const auto config = [](const std::string& name, const std::string& more) {
        return R"({"bos_token":"a","eos_token":"b","tokenizer_class":")" + name + "\"" + more + "}";
    };
    for (const std::string name :
         {"LlamaTokenizer", "LlamaTokenizerFast", "CodeLlamaTokenizer", "CodeLlamaTokenizerFast",
          "GemmaTokenizer", "GemmaTokenizerFast", "CohereTokenizerFast", "GPTNeoXTokenizerFast"}) {
        const auto with = [&](const char* more) { return around(config(name, more)); };
        EXPECT_EQ(with(""), Ids{9}) << name;
        EXPECT_EQ(with(R"(,"add_bos_token":null)"), Ids{9}) << name;
        EXPECT_EQ(with(R"(,"add_bos_token":true)"), Ids{0}) << name;
        EXPECT_EQ(with(R"(,"add_bos_token":false)"), Ids()) << name;
        EXPECT_EQ(with(R"(,"add_eos_token":true)"), (Ids{9, 1})) << name;
        EXPECT_EQ(with(R"(,"add_bos_token":true,"add_eos_token":true)"), (Ids{0, 1})) << name;
        EXPECT_EQ(with(R"(,"add_bos_token":false,"add_eos_token":false)"), Ids()) << name;
    }
    for (const std::string name : {"PreTrainedTokenizerFast", "Qwen2Tokenizer", "GPT2Tokenizer"})
        EXPECT_EQ(around(config(name, R"(,"add_bos_token":false,"add_eos_token":true)")), Ids{9});
    EXPECT_EQ(around(R"({"add_bos_token":false})"), Ids{9});
    EXPECT_EQ(around(R"({"tokenizer_class":"LlamaTokenizer","add_bos_token":true})"), Ids{9});
    EXPECT_NE(error_of([&] { around(config("LlamaTokenizer", R"(,"add_bos_token":"yes")")); }), "");
    EXPECT_TRUE(error_of([&] {
                    around(R"({"tokenizer_class":"LlamaTokenizer","add_eos_token":true})");
                }).ends_with("add_eos_token is true, but no token is EOS"));
}

TEST(Tokenizer, RefusesAMissingModel) {
    const TestFolder folder;
    EXPECT_NE(error_of([&] { Tokenizer::load(folder.path()); }), "");
    folder.write("tokenizer.model", "");
    EXPECT_NE(error_of([&] { Tokenizer::load(folder.path()); }), "");
}

}  // namespace
}  // namespace aerie
