// How far two lists of ids have the same text, whatever tokens they write it with.
#pragma once

#include <span>
#include <vector>

#include "text/bpe_tokenizer.h"

namespace aerie {

// Numbers of ids at the start of each list.
struct CommonText {
    size_t first = 0, second = 0;
};

// The longest prefixes of both lists that decode to the same text, as numbers of tokens. An added
// token (such as a control token) equals only itself: its spelling in plain text is another text.
CommonText common_text(const BpeTokenizer& tokenizer, std::span<const int> first,
                       std::span<const int> second);

// The second list, with the tokens of the first one as far as the text is the same.
std::vector<int> joined_text(const BpeTokenizer& tokenizer, std::span<const int> first,
                             std::span<const int> second);

}  // namespace aerie
