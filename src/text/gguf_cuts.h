// How byte-level vocabularies of GGUF files cut a text, by the name that the files have for it.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "text/bpe_tokenizer.h"

namespace aerie {

// A value of tokenizer.ggml.pre, and what tokenizer.json of the models that it is named after has
// there.
struct GgufCut {
    // Each cuts what those before it have left; empty: none. One has all that it matches, and what
    // lies between, for words.
    using Splits = std::array<std::string_view, 6>;

    std::string_view name;
    Splits splits;
    bool ignore_merges = false;
    bool nfc = false;
    bool adds_bos = false;  // in front of a text, where tokenizer.ggml.add_bos_token is missing

    PreTokens pre_tokens() const;
    Normaliser normaliser() const;
};

// nullptr: the name is unknown.
const GgufCut* find_gguf_cut(std::string_view name);
// The first one that cuts texts as `parts` does; nullptr: there is none.
const GgufCut* find_gguf_cut(const BpeTokenizer::Parts& parts);
// All names, for the error of an unknown one: "gpt-2, llama-bpe".
std::string gguf_cut_names();

}  // namespace aerie
