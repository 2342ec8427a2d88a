// The pre-tokenizers of byte-level vocabularies in GGUF files, by the names that the files have for
// them.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "text/bpe_tokenizer.h"

namespace aerie {

// A value of tokenizer.ggml.pre, and the settings in the tokenizer.json of the models that it is
// named after.
struct GgufPreTokenizer {
    // Each expression cuts what the ones before it have left; empty: none. Its matches are words,
    // and so is the text between them.
    using Splits = std::array<std::string_view, 6>;

    std::string_view name;
    Splits splits;
    bool ignore_merges = false;
    bool nfc = false;
    bool adds_bos = false;  // the default if tokenizer.ggml.add_bos_token is missing

    PreTokens pre_tokens() const;
    Normaliser normaliser() const;
};

// nullptr: the name is unknown.
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name);
// The first one that cuts texts as `parts` does; nullptr: there is none.
const GgufPreTokenizer* find_gguf_pre_tokenizer(const BpeTokenizer::Parts& parts);
// All names, for the error about an unknown one: "gpt-2, llama-bpe".
std::string gguf_pre_tokenizer_names();

}  // namespace aerie
