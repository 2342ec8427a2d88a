// The spellings are facts of published vocabularies.
#include "text/fill_in_middle.h"

namespace aerie {

namespace {

struct GapTokens {
    std::string_view before, after, middle;
};

constexpr GapTokens kGapTokens[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},     // Qwen
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},           // StarCoder
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},           // SantaCoder
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},     // DeepSeek
    {"▁<PRE>", "▁<SUF>", "▁<MID>"},                             // Code Llama
    {"<PRE>", "<SUF>", "<MID>"},                                // the same, converted
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},  // GLM
    {"<|prefix|>", "<|suffix|>", "<|middle|>"}};                // Yi, ChatGLM

void append(std::vector<int>& ids, const std::vector<int>& more) {
    ids.insert(ids.end(), more.begin(), more.end());
}

}  // namespace

std::optional<std::vector<int>> encode_gap(const Tokenizer& tokenizer, std::string_view before,
                                           std::string_view after) {
    const BpeTokenizer& bpe = tokenizer.bpe();
    for (const GapTokens& tokens : kGapTokens) {
        const int first = bpe.id_of(tokens.before), second = bpe.id_of(tokens.after),
                  third = bpe.id_of(tokens.middle);
        if (first < 0 || second < 0 || third < 0) continue;
        std::vector<int> ids = tokenizer.encode_from_start("");
        ids.push_back(first);
        append(ids, tokenizer.encode(before));
        ids.push_back(second);
        append(ids, tokenizer.encode(after));
        ids.push_back(third);
        return ids;
    }
    return {};
}

}  // namespace aerie
