// Recognises tokens of a GGUF file by their texts, whatever type the file has for them: converters
// have written control tokens as normal and as user-defined ones.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "io/gguf/metadata.h"

namespace aerie {

// A token that is a control token by its text.
struct GgufControlToken {
    size_t id = 0;
    bool ends_turn = false;
};

// Control tokens in ascending order of ids; the texts are those that llama.cpp recognises. Throws
// Error if tokenizer.ggml.tokens is no list of texts.
std::vector<GgufControlToken> gguf_control_tokens(const GgufMetadata& metadata);

// Ids of all tokens that end a turn: those that keys name as EOS, EOT and EOM, and as padding,
// repository and file of fill-in-the-middle, and those that end a turn by their text. Ids of keys
// that are no tokens are left out except for EOS, EOT and EOM. Throws Error naming the file.
std::set<int64_t> gguf_ends(const GgufMetadata& metadata);

}  // namespace aerie
