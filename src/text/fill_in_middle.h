// Prompts for fill-in-the-middle: the model writes the text between two others.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace aerie {

// The ids of a prompt after which the model writes what stands between `before` and `after`: both
// texts behind their control tokens, then the token of the middle. Nothing if the vocabulary has no
// such tokens. Control tokens in the texts are plain text.
std::optional<std::vector<int>> encode_gap(const Tokenizer& tokenizer, std::string_view before,
                                           std::string_view after);

}  // namespace aerie
