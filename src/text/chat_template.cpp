// Labels say who wrote each part of a text, and rendering keeps them.
#include "text/chat_template.h"

#include <algorithm>

#include "core/error.h"
#include "core/platform.h"
#include "core/utf8.h"

namespace aerie {
namespace {

using jinja::Label;
using jinja::Variable;

constexpr Label label_of(Recognised recognised) {
    return Label(recognised);
}
constexpr Label kTrusted = label_of(Recognised::all), kAnswer = label_of(Recognised::not_special),
                kForeign = label_of(Recognised::none);

// The content of an assistant's message counts as the model's own.
Variable message_variable(const Json& message) {
    if (!message.object()) return {message, kForeign};
    const Json* role = message.find("role");
    const bool is_answer = role && role->string() && *role->string() == "assistant";
    Variable::Object members;
    for (const auto& [name, value] : *message.object())
        members.emplace_back(name,
                             Variable(value, is_answer && name == "content" ? kAnswer : kForeign));
    return {std::move(members), kForeign};
}

Variable::Object variables_of(const Conversation& conversation, const NamedTokens& tokens) {
    Variable::List messages;
    for (const Json& message : *conversation.messages.array())
        messages.push_back(message_variable(message));
    Variable::Object all;
    all.emplace_back("messages", Variable(std::move(messages), kForeign));
    all.emplace_back("tools", Variable(conversation.tools, kForeign));
    all.emplace_back("documents", Variable(conversation.documents, kForeign));
    all.emplace_back("add_generation_prompt",
                     Variable(Json(conversation.add_generation_prompt), kTrusted));
    const auto add = [&](const std::string& name, Variable value) {
        for (auto& [known, old] : all)
            if (known == name) {
                old = std::move(value);
                return;
            }
        all.emplace_back(name, std::move(value));
    };
    for (const auto& [name, text] : tokens) add(name, Variable(Json(text), kTrusted));
    if (conversation.kwargs.object())
        for (const auto& [name, value] : *conversation.kwargs.object())
            add(name, Variable(value, kForeign));
    return all;
}

}  // namespace

void Conversation::add(const std::string& role, const std::string& content) {
    Json::Array all = *messages.array();
    all.push_back(Json::Object{{"role", role}, {"content", content}});
    messages = std::move(all);
}

void Conversation::put_first(const std::string& role, const std::string& content) {
    Json::Array all = *messages.array();
    all.insert(all.begin(), Json::Object{{"role", role}, {"content", content}});
    messages = std::move(all);
}

Conversation read_conversation(std::string_view json, const std::string& file) {
    Json root = Json::parse(json, file);
    Conversation conversation;
    if (root.array()) root = Json::Object{{"messages", std::move(root)}};
    if (!root.object()) throw Error(file + ": neither a conversation nor a list of messages");
    const auto take = [&](const char* name, Json& to) {
        if (const Json* value = root.find(name)) to = *value;
    };
    take("messages", conversation.messages);
    take("tools", conversation.tools);
    take("documents", conversation.documents);
    take("kwargs", conversation.kwargs);
    if (!conversation.messages.array()) throw Error(file + ": 'messages' is no list");
    int number = 0;
    for (const Json& message : *conversation.messages.array()) {
        const std::string named = file + ": message " + std::to_string(++number);
        const Json* role = message.object() ? message.find("role") : nullptr;
        if (!role || !role->string()) throw Error(named + " has no 'role'");
        if (*role->string() != "assistant" && !message.find("content"))
            throw Error(named + " has no 'content'");
    }
    if (!conversation.kwargs.is_null() && !conversation.kwargs.object())
        throw Error(file + ": 'kwargs' is no object");
    return conversation;
}

jinja::Rendered render_chat(const NamedText& chat_template, const NamedTokens& tokens,
                            const Conversation& conversation) {
    return jinja::Template::parse(chat_template.text, chat_template.file)
        .render(variables_of(conversation, tokens), conversation.now);
}

void append_answer(jinja::Rendered& chat, const std::string& text) {
    if (text.empty()) return;
    chat.text += text;
    if (chat.runs.empty() || chat.runs.back().label != kAnswer) chat.runs.push_back({kAnswer, 0});
    chat.runs.back().bytes += text.size();
}

std::string why_no_system_message(const NamedText& chat_template, const NamedTokens& tokens,
                                  const std::string& system) {
    const auto now = platform::local_time();
    const auto rendered = [&](const std::string& more) {
        Conversation least;
        least.add("system", system + more);
        least.add("user", "x");
        least.now = now;
        return render_chat(chat_template, tokens, least).text;
    };
    try {
        // Another system message must make another text.
        return rendered("") != rendered(" and") ? "" : "its chat template leaves it out";
    } catch (const jinja::Failure&) {
        throw;
    } catch (const jinja::Refusal& refusal) {
        return refusal.message();
    }
}

void check_chat_template(const NamedText& chat_template) {
    jinja::Template::parse(chat_template.text, chat_template.file);
}

const NamedText& chat_template_of(const Tokenizer& tokenizer) {
    if (tokenizer.chat_template().text.empty())
        throw Error(
            tokenizer.file() + ": the model has no chat template; give one with --template FILE",
            Cause::unsupported);
    return tokenizer.chat_template();
}

std::vector<int> encode_chat(const Tokenizer& tokenizer, const jinja::Rendered& rendered) {
    Recognition recognition;
    for (const jinja::Run& run : rendered.runs)
        recognition.by_byte.append(run.bytes, char(run.label));
    return tokenizer.bpe().encode(rendered.text, recognition);
}

}  // namespace aerie
