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
// cuts a text is in a table (text/gguf_cuts.h), by tokenizer.ggml.pre. Throws Error naming the
// file, also for what is not in the table.
GgufTokenizer gguf_tokenizer(const GgufMetadata& metadata);

}  // namespace aerie
