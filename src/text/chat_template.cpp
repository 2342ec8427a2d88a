// The chat templates that we know, by their exact text, each with the code that renders it.
#include "text/chat_template.h"

#include <array>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {
namespace {

// Appends text as plain ids; nothing for no text (encoding "" is no space either).
void append_text(std::vector<int>& ids, const Tokenizer& tokenizer, std::string& text) {
    const std::vector<int> more = tokenizer.encode(text);
    ids.insert(ids.end(), more.begin(), more.end());
    text.clear();
}

// BOS, then "USER: ... ASSISTANT:" and " ..." EOS in turn.
std::vector<int> render_user_assistant(const Tokenizer& tokenizer,
                                       const std::vector<ChatMessage>& messages) {
    std::vector<int> ids = {tokenizer.bos()};
    std::string text;  // since the last special token
    for (const ChatMessage& message : messages) {
        if (message.role == "user") {
            text += "USER: " + message.content + " ASSISTANT:";
        } else if (message.role == "assistant") {
            text += " " + message.content;
            append_text(ids, tokenizer, text);
            ids.push_back(tokenizer.eos());
        } else {
            throw UsageError("role " + in_quotes(message.role) + ", expected user or assistant");
        }
    }
    append_text(ids, tokenizer, text);
    return ids;
}

struct KnownTemplate {
    std::string_view text;
    std::vector<int> (*render)(const Tokenizer&, const std::vector<ChatMessage>&);
};

constexpr std::array kKnownTemplates{KnownTemplate{
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}"
    "USER: {{ m['content'] }} ASSISTANT:"
    "{% elif m['role'] == 'assistant' %} {{ m['content'] }}{{ eos_token }}{% endif %}{% endfor %}",
    render_user_assistant}};

}  // namespace

std::vector<int> apply_chat_template(const Tokenizer& tokenizer,
                                     const std::vector<ChatMessage>& messages) {
    if (tokenizer.chat_template().empty()) {
        throw Error("tokenizer_config.json: no chat template, so --chat cannot be used");
    }
    for (const KnownTemplate& known : kKnownTemplates) {
        if (tokenizer.chat_template() != known.text) continue;
        if (tokenizer.bos() < 0 || tokenizer.eos() < 0) {
            throw Error("tokenizer_config.json: the chat template needs bos_token and eos_token");
        }
        return known.render(tokenizer, messages);
    }
    throw Error("tokenizer_config.json: --chat does not know this model's chat template");
}

}  // namespace aerie
