// Whether two tokenizers call the same tokens by the same ids.
#pragma once

#include <optional>
#include <string>

#include "text/tokenizer.h"

namespace aerie {

struct TokenDifference {
    int id = 0;
    std::string first, second;  // its texts, as the files spell them
};

// The first id below `ids` that is another token in each; ids that only one of them has (padding,
// further control tokens) do not count. Whatever spellings their file formats have in common.
std::optional<TokenDifference> first_difference(const Tokenizer& first, const Tokenizer& second,
                                                int ids);

}  // namespace aerie
