// How many bytes of a text one token may stand for.
#pragma once

#include <cstddef>

#include "text/bpe_tokenizer.h"

namespace aerie {

// Bytes of the text as it comes, before it is normalised. 0: there is no such bound, for something
// may take any part of a text away, or any length of it into one token.
size_t longest_token_bytes(const BpeTokenizer::Parts& parts);

}  // namespace aerie
