// Tokenizers in GGUF files against Hugging Face's ids of the originals (tests/data/real), and files
// that are refused.
#include "text/gguf_tokenizer.h"

#include <cmath>

#include "io/damage.h"
#include "io/input_file.h"
#include "paths.h"
#include "text/stream.h"
#include "text/tokenizer.h"

namespace aerie {
namespace {

using test::error_of;

std::vector<int> ints(const Json& list) {
    std::vector<int> values;
    for (const Json& item : *list.array()) values.push_back(int(item.number()));
    return values;
}

TEST(GgufTokenizer, GivesTheOriginalsIds) {
    const std::filesystem::path folder = test::test_data_dir() / "real";
    const Json golden =
        Json::parse(read_text(folder / "gguf_tokens.json", 1 << 20), "gguf_tokens.json");
    size_t strings = 0;
    for (const auto& [family, file] : {std::pair{"llama3", "llama3-Q4_K_M.gguf"},
                                       {"qwen3", "qwen3-Q3_K_M.gguf"},
                                       {"qwen3", "qwen3-Q4_0-split-00001-of-00003.gguf"},
                                       {"mixtral", "mixtral-F16.gguf"}}) {
        const Tokenizer tokenizer = Tokenizer::load(folder / "gguf" / file);
        const Json& own = *golden.find(family);
        EXPECT_EQ(tokenizer.encode_from_start(""), ints(*own.find("special_prefix"))) << file;
        for (const Json& entry : *own.find("strings")->array()) {
            const std::string& text = *entry.find("text")->string();
            const std::vector<int> ids = ints(*entry.find("ids"));
            EXPECT_EQ(tokenizer.encode(text, Recognised::all), ids)
                << file << " " << testing::PrintToString(text);
            TextStream stream(tokenizer, {});
            std::string streamed;
            for (const int id : ids) streamed += stream.push(id);
            EXPECT_EQ(streamed + stream.finish(), tokenizer.decode(ids)) << file;
            ++strings;
        }
        EXPECT_FALSE(tokenizer.chat_template().text.empty()) << file;
        EXPECT_GE(tokenizer.eos(), 0);
    }
    EXPECT_GE(strings, 700u);
}

// A small file's metadata, written as GGUF stores it.
class Metadata {
  public:
    Metadata& text(const std::string& key, const std::string& value) {
        return add(key, 8, counted(value));
    }
    Metadata& integer(const std::string& key, uint32_t value) { return add(key, 4, raw(value)); }
    Metadata& flag(const std::string& key, bool value) { return add(key, 7, raw(value)); }
    Metadata& texts(const std::string& key, const std::vector<std::string>& values) {
        std::string data = raw(uint32_t(8)) + raw(uint64_t(values.size()));
        for (const std::string& value : values) data += counted(value);
        return add(key, 9, data);
    }
    template <class T>
    Metadata& numbers(const std::string& key, uint32_t type, const std::vector<T>& values) {
        std::string data = raw(type) + raw(uint64_t(values.size()));
        for (const T value : values) data += raw(value);
        return add(key, 9, data);
    }
    std::string file() const {
        return "GGUF" + raw(uint32_t(3)) + raw(uint64_t(0)) + raw(uint64_t(count_)) + data_;
    }

  private:
    template <class T>
    static std::string raw(T value) {
        return {reinterpret_cast<const char*>(&value), sizeof(value)};
    }
    static std::string counted(const std::string& text) {
        return raw(uint64_t(text.size())) + text;
    }
    Metadata& add(const std::string& key, uint32_t type, const std::string& value) {
        data_ += counted(key) + raw(type) + value;
        ++count_;
        return *this;
    }
    std::string data_;
    size_t count_ = 0;
};

Metadata byte_level(const std::string& pre = "qwen2",
                    const std::vector<std::string>& merges = {"a b"}) {
    Metadata metadata;
    metadata.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", pre);
    metadata.texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<|end|>"});
    metadata.texts("tokenizer.ggml.merges", merges);
    return metadata;
}

std::string problem(const Metadata& metadata) {
    const test::TestFolder folder;
    const auto path = folder.write("m.gguf", metadata.file());
    const std::string error = error_of([&] { Tokenizer::load(path); });
    if (error.empty()) return "";
    EXPECT_TRUE(error.starts_with(path.string() + ": ")) << error;
    EXPECT_EQ(error.find('\n'), error.npos);
    return error.substr(std::min(error.size(), path.string().size() + 2));
}

Tokenizer loaded(const Metadata& metadata) {
    const test::TestFolder folder;
    return Tokenizer::load(folder.write("m.gguf", metadata.file()));
}

// There is a merge of the two digits, so only a cut between them keeps them apart.
TEST(GgufTokenizer, CutsDigitsOneByOneForSmollm) {
    const auto ids = [](const char* pre) {
        Metadata metadata;
        metadata.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", pre);
        metadata.texts("tokenizer.ggml.tokens", {"1", "2", "12", "a", "\u0120", "\u0120a"});
        metadata.texts("tokenizer.ggml.merges", {"1 2", "\u0120 a"});
        return loaded(metadata).encode_from_start("12a a 12");
    };
    EXPECT_EQ(ids("gpt-2"), (std::vector<int>{2, 3, 5, 4, 2}));
    EXPECT_EQ(ids("smollm"), (std::vector<int>{0, 1, 3, 5, 4, 0, 1}));
}

// Some files mark control tokens as normal, with merges that make them, or as user-defined.
TEST(GgufTokenizer, TakesControlTokensByTheirTexts) {
    for (const int32_t type : {1, 3, 4, 5}) {
        Metadata metadata;
        metadata.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
        metadata.texts("tokenizer.ggml.tokens",
                       {"<", "/", "s", ">", "a", "</", "</s", "</s>", "</s>a", "</a"});
        metadata.texts("tokenizer.ggml.merges", {"< /", "</ s", "</ a", "</s >", "</s> a"});
        metadata.numbers<int32_t>("tokenizer.ggml.token_type", 5,
                                  {1, 1, 1, 1, 1, 1, 1, type, 1, 1});
        const Tokenizer tokenizer = loaded(metadata);
        EXPECT_TRUE(tokenizer.bpe().is_special(7)) << type;
        EXPECT_EQ(tokenizer.bytes(7), "");
        EXPECT_EQ(tokenizer.encode("</s>a</a", Recognised::all), (std::vector<int>{7, 4, 5, 4}));
        EXPECT_EQ(tokenizer.encode("</s>a</a"), (std::vector<int>{5, 2, 3, 4, 5, 4}));
    }
}

TEST(GgufTokenizer, TakesControlPiecesByTheirTexts) {
    for (const int32_t type : {1, 3, 4, 5}) {
        Metadata metadata;
        metadata.text("tokenizer.ggml.model", "llama");
        metadata.texts("tokenizer.ggml.tokens", {"<unk>", "<|im_end|>", "<|im_e", "nd|>", "a"});
        metadata.numbers<float>("tokenizer.ggml.scores", 6, {0, -1, -2, -3, -4});
        metadata.numbers<int32_t>("tokenizer.ggml.token_type", 5, {2, type, 1, 1, 1});
        const Tokenizer tokenizer = loaded(metadata);
        EXPECT_TRUE(tokenizer.bpe().is_special(1)) << type;
        EXPECT_EQ(tokenizer.encode("<|im_end|>", Recognised::all), (std::vector<int>{1}));
        EXPECT_EQ(tokenizer.encode("<|im_end|>"), (std::vector<int>{0}));
    }
}

// The cut's name decides if the file does not say; and a word that is a token is taken though no
// merges make it.
TEST(GgufTokenizer, TakesBosAndWholeWordsByTheNameOfTheCut) {
    const auto ids = [](const std::string& pre, const std::optional<bool>& adds_bos = {}) {
        Metadata metadata;
        metadata.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", pre);
        metadata.texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<s>"});
        metadata.texts("tokenizer.ggml.merges", {});
        metadata.numbers<int32_t>("tokenizer.ggml.token_type", 5, {1, 1, 1, 3});
        metadata.integer("tokenizer.ggml.bos_token_id", 3);
        if (adds_bos) metadata.flag("tokenizer.ggml.add_bos_token", *adds_bos);
        return loaded(metadata).encode_from_start("ab");
    };
    using Ids = std::vector<int>;
    for (const char* pre : {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral",
                            "midm-2.0", "lfm2", "tekken"}) {
        EXPECT_EQ(ids(pre), (Ids{3, 2})) << pre;
        EXPECT_EQ(ids(pre, false), (Ids{2})) << pre;
    }
    EXPECT_EQ(ids("minicpm5"), (Ids{2}));
    for (const char* pre : {"default", "gpt-2", "smollm", "qwen2", "smaug-bpe", "deepseek-llm",
                            "deepseek-coder", "deepseek-v3", "llama4", "gpt-4o", "minerva-7b",
                            "glm4", "refact", "starcoder", "command-r", "seed-coder", "viking"}) {
        EXPECT_EQ(ids(pre), (Ids{0, 1})) << pre;
        EXPECT_EQ(ids(pre, true), (Ids{3, 0, 1})) << pre;
    }
}

TEST(GgufTokenizer, RefusesWhatDoesNotFit) {
    const std::vector<int32_t> types = {1, 1, 1, 3};
    const auto typed = [&](std::vector<int32_t> list) {
        Metadata metadata = byte_level();
        return metadata.numbers("tokenizer.ggml.token_type", 5, list);
    };
    EXPECT_EQ(problem(byte_level()), "");
    EXPECT_EQ(problem(typed(types)), "");
    EXPECT_EQ(problem(typed({1, 1, 1})),
              "'tokenizer.ggml.token_type' has not one entry for each token");
    EXPECT_EQ(problem(typed({1, 1, 1, 9})), "token 3 is of type 9, which is unknown");
    EXPECT_TRUE(problem(byte_level("unheard-of"))
                    .starts_with("'tokenizer.ggml.pre' is 'unheard-of'; known are gpt-2,"));
    EXPECT_EQ(problem(byte_level("qwen2", {"a c"})), "a merge names 'ac', which is no token");
    EXPECT_EQ(problem(byte_level("qwen2", {"b a"})), "a merge names 'ba', which is no token");
    for (const char* merge : {"a", "a b c", "", " "})
        EXPECT_NE(problem(byte_level("qwen2", {merge})), "") << merge;
    EXPECT_EQ(problem(byte_level().integer("tokenizer.ggml.bos_token_id", 4)),
              "'tokenizer.ggml.bos_token_id' is 4, which is no token");
    EXPECT_EQ(
        problem(Metadata().text("tokenizer.ggml.model", "bert").texts("tokenizer.ggml.tokens", {})),
        "a tokenizer of kind 'bert' is not supported");
    EXPECT_NE(problem(Metadata().text("tokenizer.ggml.model", "gpt2")), "");
}

TEST(GgufTokenizer, RefusesBadScores) {
    const auto scored = [](std::vector<float> scores, std::vector<int32_t> types) {
        Metadata metadata;
        metadata.text("tokenizer.ggml.model", "llama");
        metadata.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "a"});
        metadata.numbers("tokenizer.ggml.scores", 6, scores);
        metadata.numbers("tokenizer.ggml.token_type", 5, types);
        return problem(metadata);
    };
    EXPECT_EQ(scored({0, 0, -1}, {2, 3, 1}), "");
    EXPECT_EQ(scored({0, 0}, {2, 3, 1}),
              "'tokenizer.ggml.scores' has not one entry for each token");
    EXPECT_EQ(scored({0, 0, NAN}, {2, 3, 1}), "piece 'a' has no finite score");
    EXPECT_EQ(scored({0, 0, 0}, {3, 3, 1}), "0 unknown pieces, expected one");
    EXPECT_NE(scored({0, 0, 0}, {2, 3, 6}), "");
}

}  // namespace
}  // namespace aerie
