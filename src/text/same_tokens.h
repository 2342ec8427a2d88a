// Whether two tokenizers have the same tokens under the same ids.
#pragma once

#include <optional>
#include <string>

#include "text/tokenizer.h"

namespace aerie {

struct TokenDifference {
    int id = 0;
    std::string first, second;  // its texts, as the files spell them
};

// The first id below `ids` that is a different token in each. Tokens are compared by their
// spellings in the files; ids that only one of the two has (padding, further control tokens) do not
// count.
std::optional<TokenDifference> first_difference(const Tokenizer& first, const Tokenizer& second,
                                                int ids);

}  // namespace aerie
