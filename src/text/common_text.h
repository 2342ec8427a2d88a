// How far two lists of ids say the same, whatever pieces they say it in.
#pragma once

#include <span>
#include <vector>

#include "text/bpe_tokenizer.h"

namespace aerie {

// Ids at the beginning of each.
struct CommonText {
    size_t first = 0, second = 0;
};

// The longest beginnings that say the same and end with a whole token in both. Added tokens
// (control tokens among them) say only what they are: their spelling in plain text is another
// text.
CommonText common_text(const BpeTokenizer& tokenizer, std::span<const int> first,
                       std::span<const int> second);

// The second list, in the pieces of the first one as far as they say the same.
std::vector<int> joined_text(const BpeTokenizer& tokenizer, std::span<const int> first,
                             std::span<const int> second);

}  // namespace aerie
