// `aerie render`: a conversation as a chat template writes it.
#include "commands.h"
#include "core/error.h"
#include "core/platform.h"
#include "terminal.h"
#include "text/chat_template.h"

namespace aerie {

namespace {

// Replaces a named token of the model by the one that is given.
void name_token(NamedTokens& tokens, const std::string& name,
                const std::optional<std::string>& text) {
    if (!text) return;
    std::erase_if(tokens, [&](const auto& token) { return token.first == name; });
    tokens.emplace_back(name, *text);
}

}  // namespace

int run_render(const RenderOptions& options) {
    const std::string text = read_input(options.conversation);
    Conversation conversation = read_conversation(text, options.conversation);
    conversation.add_generation_prompt = options.add_generation_prompt;
    conversation.now = options.now ? *options.now : platform::local_time();
    NamedText chat_template;
    NamedTokens tokens;
    if (options.model || !options.chat_template) {
        const Tokenizer tokenizer = Tokenizer::load(locate_model(options.model));
        if (!options.chat_template) chat_template = chat_template_of(tokenizer);
        tokens = tokenizer.named_tokens();
    }
    if (options.chat_template)
        chat_template = {read_input(*options.chat_template), *options.chat_template};
    name_token(tokens, "bos_token", options.bos);
    name_token(tokens, "eos_token", options.eos);
    const jinja::Rendered rendered = render_chat(chat_template, tokens, conversation);
    if (!options.json) {
        print(rendered.text);
        return 0;
    }
    print(Json(Json::Object{{"schema", "aerie-render-1"}, {"text", rendered.text}}).dump() + "\n");
    return 0;
}

}  // namespace aerie
