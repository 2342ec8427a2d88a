// The tokenizer that a GGUF file carries in its metadata.
#pragma once

#include "io/gguf/metadata.h"
#include "text/bpe_tokenizer.h"

namespace aerie {

struct GgufTokenizer {
    BpeTokenizer bpe;
    int bos = -1, eos = -1;     // -1: none
    std::string chat_template;  // empty: none
};

// Reads a tokenizer.ggml.model "llama" (pieces with scores) or "gpt2" (byte-level, with merges);
// the latter cuts a text by the row of text/gguf_pre_tokenizers.h that tokenizer.ggml.pre names.
// Throws Error naming the file, also for an unknown name.
GgufTokenizer gguf_tokenizer(const GgufMetadata& metadata);

}  // namespace aerie
