// The reverse of text/gguf_tokenizer.h: a tokenizer as the metadata of a GGUF file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/gguf/metadata.h"
#include "text/tokenizer.h"

namespace aerie {

// Adds all keys of tokenizer.*; those of a GGUF file are copied. `tokenizer` was read from
// `source`, `vocab` is the number of rows of the model's embedding table: ids without a token get
// one that no text becomes. `ends`: ids that end a text, the most important first. The result is
// read back and must give the same ids. Returns one line for each property that GGUF cannot
// express. Throws Error if it cannot express the tokenizer at all.
std::vector<std::string> describe_tokenizer(const TokenizerSource& source,
                                            const Tokenizer& tokenizer, int vocab,
                                            std::span<const int> ends, GgufMetadata& metadata);

}  // namespace aerie
