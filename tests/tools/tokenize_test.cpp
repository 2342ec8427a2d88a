// `aerie tokenize`: its table, and that it reads a prompt as `generate` does.
#include <gtest/gtest.h>

#include "io/damage.h"
#include "io/input_file.h"
#include "io/json.h"
#include "paths.h"
#include "tools/generated.h"

namespace aerie::test {
namespace {

std::string tokenized(const std::vector<std::string>& flags, const Surroundings& around = {}) {
    const Outcome outcome = run(with({"tokenize"}, flags), around);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
}

// The text in quotes on each line of the table.
std::vector<std::string> shown(const std::string& text) {
    const std::string table = tokenized({"-m", "aerie-tiny", "-f", "-"}, {.input = text});
    std::vector<std::string> all;
    for (size_t at = 0, end; (end = table.find('\n', at)) != table.npos; at = end + 1) {
        const std::string line = table.substr(at, end - at);
        const size_t quote = line.find('\'');
        EXPECT_TRUE(quote != line.npos && line.ends_with('\'')) << table;
        all.push_back(line.substr(quote + 1, line.size() - quote - 2));
    }
    return all;
}

std::string joined(const std::string& text) {
    std::string all;
    for (const std::string& token : shown(text)) all += token;
    return all;
}

TEST(Tokenize, ShowsTheSpaceThatATokenBeginsWith) {
    EXPECT_EQ(joined("a  b a"), "<s> a  b a");
    EXPECT_EQ(shown("the the").back(), " the");
}

TEST(Tokenize, ShowsControlCharactersAsEscapes) {
    EXPECT_EQ(joined("a?b"), "<s> a?b");
    EXPECT_EQ(joined("a\n\r\tb"), "<s> a\\n\\r\\tb");
    EXPECT_EQ(joined("\x1B[1m\x7F"), "<s> \\x1B[1m\\x7F");
    EXPECT_EQ(joined("a\\b"), "<s> a\\\\b");
}

// A character that the vocabulary has only as bytes is no text of one token.
TEST(Tokenize, ShowsBytesThatAreNoCharacterAsEscapes) {
    EXPECT_EQ(joined("\xF0\x9F\x8C\x8A"), "<s> \\xF0\\x9F\\x8C\\x8A");
    EXPECT_EQ(joined("\xE2\x80\xAE"), "<s> \\xE2\\x80\\xAE");
}

TEST(Tokenize, TakesTextAndIdsFromTheCommandLine) {
    EXPECT_EQ(tokenized({"-m", "aerie-tiny", "the sea"}),
              tokenized({"-m", "aerie-tiny", "-p", "the sea"}));
    const TestFolder folder;
    folder.write("ids.json", "[[300, 301]]");
    EXPECT_EQ(tokenized({"-m", "aerie-tiny", "--decode", "300,301"}),
              tokenized({"-m", "aerie-tiny", "--decode", (folder.path() / "ids.json").string()}));
}

TEST(Tokenize, RefusesIdsThatNoTokenHas) {
    for (const char* ids : {"4096", "1,2,999999999", "-1", "1,99999999999999999999"}) {
        const Outcome outcome = run({"tokenize", "-m", "aerie-tiny", "--decode", ids});
        EXPECT_EQ(outcome.exit_code, 1) << ids;
        EXPECT_NE(outcome.err.find("--decode: "), std::string::npos) << outcome.err;
        EXPECT_NE(outcome.err.find("is no token's id; they go from 0 to 4095"), std::string::npos)
            << outcome.err;
    }
}

TEST(Tokenize, SaysThePrefixThatGenerateReads) {
    const TestFolder folder;
    for (const auto& entry : std::filesystem::directory_iterator(models_dir() / "aerie-tiny"))
        if (entry.path().filename() != "tokenizer_config.json")
            std::filesystem::copy_file(entry.path(), folder.path() / entry.path().filename());
    for (const char* bos : {"true", "false"}) {
        folder.write("tokenizer_config.json",
                     std::string(R"({"bos_token":"<s>","add_eos_token":true,"eos_token":"</s>",)") +
                         R"("add_bos_token":)" + bos + "}");
        const std::string model = folder.path().string();
        const Json printed = Json::parse(tokenized({"-m", model, "-p", "Hi", "--json"}), "stdout");
        const Json& result = printed.find("results")->array()->front();
        const Json read = generated({"-m", model, "-p", "Hi", "-n", "1"});
        std::string expected = field(read, "prompt_ids");
        expected.back() = ',';
        EXPECT_EQ(field(result, "ids_special"), expected + "2]") << bos;
        EXPECT_EQ(field(result, "ids_special").starts_with("[1,"), std::string(bos) == "true");
    }
}

TEST(Tokenize, ReadsPromptFilesWithoutTheirByteOrderMark) {
    const TestFolder folder;
    const std::string file = folder.write("p.txt", "\xEF\xBB\xBFHello").string();
    const auto plain = tokenized({"-m", "aerie-tiny", "-p", "Hello"});
    EXPECT_EQ(tokenized({"-m", "aerie-tiny", "-f", file}), plain);
    EXPECT_EQ(tokenized({"-m", "aerie-tiny", "-f", "-"}, {.input = "\xEF\xBB\xBFHello"}), plain);
    EXPECT_EQ(field(generated({"-m", "aerie-tiny", "-f", file, "-n", "1"}), "prompt_ids"),
              field(generated({"-m", "aerie-tiny", "-p", "Hello", "-n", "1"}), "prompt_ids"));
    // Anywhere else the byte order mark is a character.
    EXPECT_NE(tokenized({"-m", "aerie-tiny", "-p", "\xEF\xBB\xBFHello"}), plain);
}

}  // namespace
}  // namespace aerie::test
