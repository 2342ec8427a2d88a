// Conversations as the texts and ids that a model was trained on, by its own chat template.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "text/jinja.h"
#include "text/tokenizer.h"

namespace aerie {

struct Conversation {
    Json messages = Json::Array{};      // objects with "role" and "content", as templates want them
    Json tools, documents;              // null: none
    Json kwargs;                        // an object of further variables; null: none
    bool add_generation_prompt = true;  // go on to where the assistant's answer begins
    std::tm now{};                      // what templates see that tell the date

    void add(const std::string& role, const std::string& content);
    void put_first(const std::string& role, const std::string& content);
};

// {"messages": ..., "tools": ..., "documents": ..., "kwargs": ...}, or the list of messages alone.
// `file` names it in errors. Throws Error.
Conversation read_conversation(std::string_view json, const std::string& file);

// Special tokens by the names that templates have for them.
using NamedTokens = std::vector<std::pair<std::string, std::string>>;

// Labels of its text are Recognised: what a template has written holds all added tokens, the
// content of an assistant's message those that are not special, all else none. Throws Error if the
// template does not parse; jinja::Refusal if it refuses the conversation, jinja::Failure if it
// cannot handle it, jinja::TextTooLong if that is because of more than 4 MB.
jinja::Rendered render_chat(const NamedText& chat_template, const NamedTokens& tokens,
                            const Conversation& conversation);

// Ids of a rendered text, without any BOS but the template's own.
std::vector<int> encode_chat(const Tokenizer& tokenizer, const jinja::Rendered& rendered);

// Throws Error, naming the place, if the template does not parse. One without text does.
void check_chat_template(const NamedText& chat_template);

// The model's own. Throws Error if it has none.
const NamedText& chat_template_of(const Tokenizer& tokenizer);
inline jinja::Rendered render_chat(const Tokenizer& tokenizer, const Conversation& conversation) {
    return render_chat(chat_template_of(tokenizer), tokenizer.named_tokens(), conversation);
}

}  // namespace aerie
