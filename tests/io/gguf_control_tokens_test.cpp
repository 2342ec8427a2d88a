// Tokens of GGUF files that end a turn, recognised by their texts.
#include "io/gguf/control_tokens.h"

#include <gtest/gtest.h>

namespace aerie {
namespace {

GgufMetadata tokens(const std::vector<std::string_view>& texts) {
    GgufMetadata metadata("m.gguf");
    metadata.add("tokenizer.ggml.tokens", GgufValue::list(texts));
    return metadata;
}

std::set<int64_t> ends(const std::vector<std::string_view>& texts) {
    return gguf_ends(tokens(texts));
}

using Ids = std::set<int64_t>;

// The files have no token types, which do not matter here.
TEST(GgufControlTokens, EndTurnsByTheirTexts) {
    for (const char* text : {"<|eot_id|>",
                             "<|im_end|>",
                             "<|end|>",
                             "<end_of_turn>",
                             "<|endoftext|>",
                             "</s>",
                             "<|end_of_text|>",
                             "<EOT>",
                             "_<EOT>",
                             "[EOT]",
                             "[EOS]",
                             "<end_of_utterance>",
                             "<eos>",
                             "<turn|>",
                             "<|tool_response>",
                             "[e~[",
                             "<|return|>",
                             "<|call|>",
                             "<|flush|>",
                             "<|calls|>",
                             "<|eom_id|>",
                             "<｜end▁of▁sentence｜>",
                             "<|fim_pad|>",
                             "<PAD>",
                             "<|repo_name|>",
                             "<reponame>",
                             "<|file_sep|>"})
        EXPECT_EQ(ends({"a", text, "b"}), (Ids{1})) << text;
    for (const char* text : {"<|im_end|", "im_end", "<|IM_END|>", " </s>", "<s>", "<|im_start|>",
                             "<|fim_prefix|>", "▁<MID>", ""})
        EXPECT_EQ(ends({"a", text, "b"}), Ids()) << text;
    EXPECT_EQ(ends({"</s>", "<|im_end|>", "a", "<|endoftext|>"}), (Ids{0, 1, 3}));
}

TEST(GgufControlTokens, AroundAGapAreControlTokens) {
    const std::vector<GgufControlToken> signs =
        gguf_control_tokens(tokens({"<fim_prefix>", "a", "▁<SUF>", "<｜fim▁end｜>", "</s>"}));
    ASSERT_EQ(signs.size(), 4u);
    EXPECT_EQ(signs[1].id, 2u);
    EXPECT_FALSE(signs[0].ends_turn || signs[1].ends_turn || signs[2].ends_turn);
    EXPECT_TRUE(signs[3].ends_turn);
}

TEST(GgufControlTokens, LeaveOutWhatIsSomethingElseInItsVocabulary) {
    EXPECT_EQ(ends({"<|end|>", "<|return|>"}), (Ids{0, 1}));
    EXPECT_EQ(ends({"<|end|>", "<|return|>", "<|call|>"}), (Ids{1, 2}));
    EXPECT_EQ(ends({"<|end|>", "<|flush|>", "<|calls|>"}), (Ids{1, 2}));
    EXPECT_EQ(ends({"</s>", "<|tool_response>"}), (Ids{1}));
}

TEST(GgufControlTokens, StandBesideWhatKeysName) {
    GgufMetadata metadata = tokens({"a", "b", "c", "d", "e", "f", "</s>"});
    const char* keys[] = {"eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep"};
    for (uint32_t i = 0; i < 6; ++i)
        metadata.add(std::string("tokenizer.ggml.") + keys[i] + "_token_id", GgufValue::of(i));
    EXPECT_EQ(gguf_ends(metadata), (Ids{0, 1, 2, 3, 4, 5, 6}));
    GgufMetadata outside = tokens({"a"});
    outside.add("tokenizer.ggml.fim_pad_token_id", GgufValue::of(uint32_t(1)));
    EXPECT_EQ(gguf_ends(outside), Ids());
}

}  // namespace
}  // namespace aerie
