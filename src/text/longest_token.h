// The most bytes of a text that one token may stand for.
#pragma once

#include <cstddef>

#include "text/bpe_tokenizer.h"

namespace aerie {

// Counted in the text as it comes, before it is normalised. 0: there is no such bound, because some
// rule may remove any part of a text, or make any length of it one token.
size_t longest_token_bytes(const BpeTokenizer::Parts& parts);

}  // namespace aerie
