// The other way round of text/gguf_tokenizer.h: a tokenizer as the metadata of a GGUF file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/gguf_metadata.h"
#include "text/tokenizer.h"

namespace aerie {

// Adds all of tokenizer.*; that of a GGUF file is copied. `tokenizer` is what `source` was read as,
// `vocab` the rows of the model's embedding table: ids without a token get one that no text
// becomes. `ends`: ids that end a text, the first counts most. What was made is read back and must
// give the same ids. Returns what GGUF does not say of it, one line each. Throws Error if it cannot
// be said at all.
std::vector<std::string> describe_tokenizer(const TokenizerSource& source,
                                            const Tokenizer& tokenizer, int vocab,
                                            std::span<const int> ends, GgufMetadata& metadata);

}  // namespace aerie
