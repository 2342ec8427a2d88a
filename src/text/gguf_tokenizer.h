// The tokenizer that a GGUF file carries in its metadata.
#pragma once

#include "io/gguf_metadata.h"
#include "text/bpe_tokenizer.h"

namespace aerie {

struct GgufTokenizer {
    BpeTokenizer bpe;
    int bos = -1, eos = -1;     // -1: none
    std::string chat_template;  // empty: none
};

// tokenizer.ggml.model "llama" (pieces with scores) or "gpt2" (byte-level, with merges); how that
// cuts a text is in a table of ours, by tokenizer.ggml.pre. Throws Error naming the file, also for
// what is not in the table.
GgufTokenizer gguf_tokenizer(const GgufMetadata& metadata);

// tokenizer.ggml.pre of a byte-level vocabulary whose text is cut by this expression; empty: there
// is none in our table.
std::string_view find_cut(std::string_view split, bool ignore_merges, bool nfc);

}  // namespace aerie
