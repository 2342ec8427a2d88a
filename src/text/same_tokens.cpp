// Only texts are compared: the caller decides which tokens begin or end a text.
#include "text/same_tokens.h"

#include <algorithm>

namespace aerie {

std::optional<TokenDifference> first_difference(const Tokenizer& first, const Tokenizer& second,
                                                int ids) {
    for (int id = 0; id < std::min({ids, first.size(), second.size()}); ++id) {
        const std::string_view a = first.bpe().text(id), b = second.bpe().text(id);
        if (!a.empty() && !b.empty() && a != b)
            return TokenDifference{id, std::string(a), std::string(b)};
    }
    return std::nullopt;
}

}  // namespace aerie
