// Token ids of conversations and texts, with a mask over what the assistant says.
#pragma once

#include <vector>

#include "io/json.h"
#include "text/tokenizer.h"

namespace aerie::train {

struct TokenText {
    std::vector<int> tokens;
    std::vector<bool> mask;  // whether a token belongs to an answer

    bool has_answer() const;
};

// The ids of these messages, by the model's own chat template, up to where the next answer begins.
// Throws Error if the model has no template, or the template refuses the messages.
std::vector<int> prompt_tokens(const Tokenizer& tokenizer, const Json::Array& messages);

// A whole conversation. An answer's tokens count up to the one that ends it. An answer counts only
// if the template writes what precedes it alike with and without it, as nearly all do.
TokenText conversation_text(const Tokenizer& tokenizer, const std::vector<int>& eos_ids,
                            const Json::Array& messages);

// A text without roles: all tokens but the first count.
TokenText plain_text(const Tokenizer& tokenizer, const std::string& text);

// Cuts a text into pieces of at most `positions` tokens, and drops those without an answer.
std::vector<TokenText> pieces_of(const TokenText& text, int positions);

}  // namespace aerie::train
