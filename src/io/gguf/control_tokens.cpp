// The texts are facts of published vocabularies.
#include "io/gguf/control_tokens.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace aerie {
namespace {

// In fill-in-the-middle, padding, a repository or a file ends the model's output.
constexpr std::array<std::string_view, 33> kEnds{
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<turn|>",
    "<|tool_response>",
    "<end_of_utterance>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "[e~[",
    "</s>",
    "<eos>",
    "<｜end▁of▁sentence｜>",
    // padding
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    // a repository, a file
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
};
// The tokens around a gap in fill-in-the-middle.
constexpr std::array<std::string_view, 24> kGaps{
    "<|fim_prefix|>", "<fim-prefix>",    "<fim_prefix>",    "<｜fim▁begin｜>", "<PRE>",
    "▁<PRE>",         "<|code_prefix|>", "<|prefix|>",      "<|fim_suffix|>",  "<fim-suffix>",
    "<fim_suffix>",   "<｜fim▁hole｜>",  "<SUF>",           "▁<SUF>",          "<|code_suffix|>",
    "<|suffix|>",     "<|fim_middle|>",  "<fim-middle>",    "<fim_middle>",    "<｜fim▁end｜>",
    "<MID>",          "▁<MID>",          "<|code_middle|>", "<|middle|>",
};
constexpr std::string_view kFirst = "<[_\xE2";  // the bytes that these texts begin with

bool is_in(std::string_view text, const auto& texts) {
    return std::find(texts.begin(), texts.end(), text) != texts.end();
}

// In some vocabularies a text means something else: "<|end|>" ends a part of a turn where others
// end the turn, and "</s>" is a tag of HTML. Other tokens reveal these vocabularies.
struct Exceptions {
    bool has_return = false, has_call = false, has_flush = false, has_tool_response = false;

    void see(std::string_view text) {
        has_return = has_return || text == "<|return|>";
        has_call = has_call || text == "<|call|>" || text == "<|calls|>";
        has_flush = has_flush || text == "<|flush|>";
        has_tool_response = has_tool_response || text == "<|tool_response>";
    }
    bool has(std::string_view text) const {
        if (text == "<|end|>") return has_call && (has_return || has_flush);
        return text == "</s>" && has_tool_response;
    }
};

}  // namespace

std::vector<GgufControlToken> gguf_control_tokens(const GgufMetadata& metadata) {
    const GgufValue& tokens = metadata.strings("tokenizer.ggml.tokens");
    std::vector<GgufControlToken> control_tokens;
    Exceptions exceptions;
    for (size_t id = 0; id < tokens.size(); ++id) {
        const std::string_view text = tokens.string(id);
        if (text.empty() || kFirst.find(text.front()) == kFirst.npos) continue;
        const bool ends_turn = is_in(text, kEnds);
        if (!ends_turn && !is_in(text, kGaps)) continue;
        control_tokens.push_back({id, ends_turn});
        exceptions.see(text);
    }
    std::erase_if(control_tokens, [&](const GgufControlToken& control_token) {
        return exceptions.has(tokens.string(control_token.id));
    });
    return control_tokens;
}

std::set<int64_t> gguf_ends(const GgufMetadata& metadata) {
    std::set<int64_t> ends;
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                            "tokenizer.ggml.eom_token_id"})
        if (metadata.find(key)) ends.insert(metadata.integer(key));
    if (!metadata.find("tokenizer.ggml.tokens")) return ends;
    const int64_t tokens = int64_t(metadata.strings("tokenizer.ggml.tokens").size());
    for (const char* key : {"tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id",
                            "tokenizer.ggml.fim_sep_token_id"}) {
        if (!metadata.find(key)) continue;
        const int64_t id = metadata.integer(key);
        if (id >= 0 && id < tokens) ends.insert(id);
    }
    for (const GgufControlToken& control_token : gguf_control_tokens(metadata))
        if (control_token.ends_turn) ends.insert(int64_t(control_token.id));
    return ends;
}

}  // namespace aerie
