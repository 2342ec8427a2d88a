#include "train/training_text.h"

#include <algorithm>

#include "text/chat_template.h"

namespace aerie::train {

namespace {

std::vector<int> rendered(const Tokenizer& tokenizer, Json::Array messages, bool asks_for_answer) {
    Conversation conversation;
    conversation.messages = std::move(messages);
    conversation.add_generation_prompt = asks_for_answer;
    conversation.now.tm_mday = 1;  // the same ids on every day
    conversation.now.tm_year = 126;
    return encode_chat(tokenizer, render_chat(tokenizer, conversation));
}

bool begins_with(const std::vector<int>& all, const std::vector<int>& part) {
    return part.size() <= all.size() && std::equal(part.begin(), part.end(), all.begin());
}

}  // namespace

bool TokenText::has_answer() const {
    return std::find(mask.begin(), mask.end(), true) != mask.end();
}

std::vector<int> prompt_tokens(const Tokenizer& tokenizer, const Json::Array& messages) {
    return rendered(tokenizer, messages, true);
}

TokenText conversation_text(const Tokenizer& tokenizer, const std::vector<int>& eos_ids,
                            const Json::Array& messages) {
    TokenText text{rendered(tokenizer, messages, false), {}};
    text.mask.resize(text.tokens.size());
    for (size_t i = 0; i < messages.size(); ++i) {
        if (*messages[i].find("role")->string() != "assistant") continue;
        const auto upto = [&](size_t count) {
            return Json::Array(messages.begin(), messages.begin() + ptrdiff_t(count));
        };
        const std::vector<int> before = rendered(tokenizer, upto(i), true),
                               through = rendered(tokenizer, upto(i + 1), false);
        if (!begins_with(through, before) || !begins_with(text.tokens, through)) continue;
        for (size_t at = before.size(); at < through.size(); ++at) {
            text.mask[at] = true;
            if (std::find(eos_ids.begin(), eos_ids.end(), text.tokens[at]) != eos_ids.end()) break;
        }
    }
    return text;
}

TokenText plain_text(const Tokenizer& tokenizer, const std::string& text) {
    TokenText made{tokenizer.encode_whole(text), {}};
    made.mask.assign(made.tokens.size(), true);
    if (!made.mask.empty()) made.mask.front() = false;
    return made;
}

std::vector<TokenText> pieces_of(const TokenText& text, int positions) {
    std::vector<TokenText> pieces;
    for (size_t first = 0; first < text.tokens.size(); first += size_t(positions)) {
        const size_t end = std::min(text.tokens.size(), first + size_t(positions));
        TokenText piece{
            {text.tokens.begin() + ptrdiff_t(first), text.tokens.begin() + ptrdiff_t(end)},
            {text.mask.begin() + ptrdiff_t(first), text.mask.begin() + ptrdiff_t(end)}};
        if (piece.tokens.size() >= 2 && piece.has_answer()) pieces.push_back(std::move(piece));
    }
    return pieces;
}

}  // namespace aerie::train
