// Known chat templates, native. A template is recognised by its exact text; nothing is interpreted.
#pragma once

#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace aerie {

struct ChatMessage {
    std::string role;  // "user" or "assistant"
    std::string content;
};

// Ids of the conversation, ready for the assistant's answer, BOS included as the template has it.
// Throws Error if the tokenizer's template is not one that we know, or a role is not.
std::vector<int> apply_chat_template(const Tokenizer& tokenizer,
                                     const std::vector<ChatMessage>& messages);

}  // namespace aerie
