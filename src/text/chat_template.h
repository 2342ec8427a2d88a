// Turns conversations into the texts and ids that a model was trained on, by its own chat template.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "jinja/jinja.h"
#include "text/tokenizer.h"

namespace aerie {

struct Conversation {
    Json messages = Json::Array{};      // objects with "role" and "content", as templates want them
    Json tools, documents;              // null: none
    Json kwargs;                        // an object of further variables; null: none
    bool add_generation_prompt = true;  // end where the assistant's answer begins
    std::tm now{};                      // date and time that templates see

    void add(const std::string& role, const std::string& content);
    void put_first(const std::string& role, const std::string& content);
};

// A member of `kwargs` that would take the place of the conversation's own variables: messages,
// tools, add_generation_prompt and special tokens are reserved, but for values that ask for
// nothing. "" if there is none.
std::string reserved_variable(const Json& kwargs);

// Reads {"messages": ..., "tools": ..., "documents": ..., "kwargs": ...}, or a list of messages
// alone. `file` names it in errors. Throws Error.
Conversation read_conversation(std::string_view json, const std::string& file);

// Makes a text of each content that is a list of text parts, as OpenAI's clients write it. `file`
// names the conversation in errors. Throws Error for parts that are no text.
void join_text_parts(Conversation& conversation, const std::string& file);

// Takes the beginning of the answer out of the messages: the content of a last message of the
// assistant; empty if there is none.
std::string take_begun_answer(Conversation& conversation);

// Special tokens under the names that templates have for them.
using NamedTokens = std::vector<std::pair<std::string, std::string>>;

// The labels of the result are Recognised: text of the template may contain all added tokens, the
// content of an assistant's message those that are not special, all else none. Throws Error if the
// template does not parse; jinja::Refusal if it refuses the conversation, jinja::Failure if it
// cannot handle it, jinja::TextTooLong if more than 4 MB are the reason.
jinja::Rendered render_chat(const NamedText& chat_template, const NamedTokens& tokens,
                            const Conversation& conversation);

// Appends the beginning of the answer to a chat that ends where the answer begins.
void append_answer(jinja::Rendered& chat, const std::string& text);
// The same, for a beginning that take_begun_answer() gave: with the space in front that the first
// token of an answer has and its text lacks.
void append_begun_answer(const Tokenizer& tokenizer, jinja::Rendered& chat, std::string text);

// Why conversations with this system message do without it: the template refuses it, or leaves it
// out. Empty if the template uses it. Throws as render_chat() does, except for the refusal.
std::string why_no_system_message(const NamedText& chat_template, const NamedTokens& tokens,
                                  const std::string& system);

// Ids of a rendered text. There is no BOS but the template's own.
std::vector<int> encode_chat(const Tokenizer& tokenizer, const jinja::Rendered& rendered);

// Throws Error, naming the place, if the template does not parse. An empty template parses.
void check_chat_template(const NamedText& chat_template);

// The model's own template. Throws Error if it has none.
const NamedText& chat_template_of(const Tokenizer& tokenizer);
inline jinja::Rendered render_chat(const Tokenizer& tokenizer, const Conversation& conversation) {
    return render_chat(chat_template_of(tokenizer), tokenizer.named_tokens(), conversation);
}

}  // namespace aerie
