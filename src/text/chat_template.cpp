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

// Variables of the conversation itself, which kwargs must not replace, and as JSON the value that
// asks for nothing.
struct ReservedVariable {
    const char *name, *neutral = "null";
};
constexpr ReservedVariable kReserved[] = {
    {"messages"},  {"tools", "[]"}, {"add_generation_prompt", "true"}, {"bos_token"}, {"eos_token"},
    {"unk_token"}, {"pad_token"}};

bool is_reserved(const std::string& name) {
    return std::any_of(std::begin(kReserved), std::end(kReserved),
                       [&](const ReservedVariable& variable) { return name == variable.name; });
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
            if (!is_reserved(name)) add(name, Variable(value, kForeign));
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

std::string reserved_variable(const Json& kwargs) {
    for (const ReservedVariable& variable : kReserved)
        if (const Json* value = kwargs.find(variable.name);
            value && !value->is_null() && value->dump() != variable.neutral)
            return variable.name;
    return "";
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
    if (!conversation.messages.array() || conversation.messages.array()->empty())
        throw Error(file + ": 'messages' must be a list of one or more messages");
    int number = 0;
    for (const Json& message : *conversation.messages.array()) {
        const std::string named = file + ": message " + std::to_string(++number);
        const Json* role = message.object() ? message.find("role") : nullptr;
        if (!role || !role->string()) throw Error(named + " has no 'role'");
        const Json* content = message.find("content");
        if (!content && *role->string() != "assistant") throw Error(named + " has no 'content'");
        if (content && !content->string() && !content->array() && !content->is_null())
            throw Error(file + ": the content of message " + std::to_string(number) +
                        " is neither a text nor a list of texts");
    }
    if (!conversation.kwargs.is_null() && !conversation.kwargs.object())
        throw Error(file + ": 'kwargs' is no object");
    if (const std::string name = reserved_variable(conversation.kwargs); !name.empty())
        throw Error(file + ": 'kwargs' must not have " + in_quotes(name));
    return conversation;
}

void join_text_parts(Conversation& conversation, const std::string& file) {
    Json::Array messages = *conversation.messages.array();
    for (size_t i = 0; i < messages.size(); ++i) {
        const Json* content = messages[i].find("content");
        if (!content || content->string()) continue;
        const std::string named = file + ": the content of message " + std::to_string(i + 1);
        std::string text;
        for (const Json& part : content->array() ? *content->array() : Json::Array{}) {
            const Json *type = part.object() ? part.find("type") : nullptr,
                       *piece = part.object() ? part.find("text") : nullptr;
            if (!type || !type->string() || *type->string() != "text" || !piece || !piece->string())
                throw Error(named + " has a part that is no text");
            text += *piece->string();
        }
        Json::Object joined;
        for (const auto& [name, value] : *messages[i].object())
            joined.emplace_back(name, name == "content" ? Json(text) : value);
        messages[i] = std::move(joined);
    }
    conversation.messages = std::move(messages);
}

std::string take_begun_answer(Conversation& conversation) {
    const Json::Array& messages = *conversation.messages.array();
    if (messages.empty()) return "";
    const Json *role = messages.back().find("role"), *content = messages.back().find("content");
    const bool is_text = content && content->string() && !messages.back().find("tool_calls");
    if (!role || !role->string() || *role->string() != "assistant" || !is_text) return "";
    std::string text = *content->string();
    conversation.messages = Json::Array(messages.begin(), messages.end() - 1);
    return text;
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

void append_begun_answer(const Tokenizer& tokenizer, jinja::Rendered& chat, std::string text) {
    const bool lacks_space =
        tokenizer.drops_leading_space() && !chat.text.ends_with(' ') && !chat.text.ends_with('\n');
    if (lacks_space && !text.empty()) text.insert(0, " ");
    append_answer(chat, text);
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
