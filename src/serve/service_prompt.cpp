// Reads a request before it is answered: its texts become token ids.
#include <algorithm>

#include "core/platform.h"
#include "serve/requests/conversation_name.h"
#include "serve/service.h"
#include "text/chat_template.h"
#include "text/common_text.h"
#include "text/fill_in_middle.h"

namespace aerie {

namespace {

bool is_answer(const Json& message) {
    return *message.find("role")->string() == "assistant";
}

// Whether the client has begun the answer itself.
bool begins_answer(const CompletionRequest& asked) {
    return asked.is_chat && is_answer(asked.messages.array()->back()) &&
           !asked.messages.array()->back().find("content")->string()->empty();
}

}  // namespace

// The messages are the client's own, so what the template says about them may be sent to it. A last
// message of the assistant is the beginning of the answer.
jinja::Rendered Service::rendered(const Json& messages, const Json& kwargs) const {
    const Tokenizer& tokenizer = model_->tokenizer();
    if (tokenizer.chat_template().text.empty())
        throw bad_request("this model has no chat template: use /v1/completions", "messages");
    if (const std::string reserved = reserved_variable(kwargs); !reserved.empty())
        throw bad_request("chat_template_kwargs must not have '" + reserved + "'",
                          "chat_template_kwargs");
    Conversation conversation;
    conversation.messages = messages;
    std::string begun = take_begun_answer(conversation);
    conversation.kwargs = kwargs;
    conversation.now = platform::local_time();
    try {
        jinja::Rendered chat = render_chat(tokenizer, conversation);
        append_begun_answer(tokenizer, chat, std::move(begun));
        return chat;
    } catch (const jinja::TextTooLong& failure) {
        throw bad_request("the messages are too long: " + failure.message(), "messages",
                          "context_length_exceeded");
    } catch (const jinja::Refusal& refusal) {
        throw bad_request("the model's chat template: " + refusal.message(), "messages");
    }
}

// True: the template has begun a thought, and the answer goes on with it.
static bool ends_in_thought(std::string_view prompt) {
    const size_t last = prompt.find_last_not_of(" \t\r\n");
    return last != prompt.npos && prompt.substr(0, last + 1).ends_with("<think>");
}

void Service::tokenize(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
    const TokenizeRequest asked = parse_tokenize_request(request.body);
    check_model(asked.model);
    tell_ignored(asked.ignored);
    const Tokenizer& tokenizer = model_->tokenizer();
    std::vector<int> ids;
    bool thinks = false;
    if (!asked.messages.is_null()) {
        const jinja::Rendered chat = rendered(asked.messages, asked.template_kwargs);
        if (chat.text.size() > kMaxTokenizedBytes)
            throw bad_request("the messages make more than 1 MB of text", "messages");
        ids = encode_chat(tokenizer, chat);
        thinks = ends_in_thought(chat.text);
    } else {
        ids = asked.from_start ? tokenizer.encode_from_start(asked.content)
                               : tokenizer.encode(asked.content);
    }
    exchange->reply({.body = Json(Json::Object{{"tokens", Json::Array(ids.begin(), ids.end())},
                                               {"count", int64_t(ids.size())},
                                               {"max_model_len", model_->context()},
                                               {"thinks", thinks}})
                                 .dump()});
}

Problem Service::too_long(const std::string& tokens, const char* param) const {
    return bad_request("the prompt has " + tokens + " tokens; a context of " +
                           std::to_string(model_->context()) + " has no room for it and an answer",
                       param, "context_length_exceeded");
}

// A text that cannot fit is refused before it is cut into tokens, which takes a second for each MB.
void Service::check_length(const std::string& text, const char* param) const {
    const size_t longest = model_->tokenizer().longest_token_bytes();
    const size_t context = size_t(model_->context());
    if (longest > 0 && text.size() / longest > context)
        throw too_long("more than " + std::to_string(context), param);
}

// A conversation that is continued by its name keeps its ids, as far as they mean the same text and
// leave room for an answer.
std::vector<int> Service::joined(const std::string& name, std::vector<int> ids) const {
    const auto held = ids_of_conversation(name);
    if (!held) return ids;
    const auto is_unknown = [&](int id) { return id >= model_->files().config.vocab; };
    if (std::any_of(held->begin(), held->end(), is_unknown)) return ids;
    std::vector<int> all = joined_text(model_->tokenizer().bpe(), *held, ids);
    return int(all.size()) < model_->context() ? all : ids;
}

std::vector<int> Service::chat_ids(const CompletionRequest& asked) const {
    const jinja::Rendered chat = rendered(asked.messages, asked.template_kwargs);
    check_length(chat.text, "messages");
    std::vector<int> ids = encode_chat(model_->tokenizer(), chat);
    return asked.joined.empty() ? ids : joined(asked.joined, std::move(ids));
}

// The ids of a prompt, or of the two texts around a gap that the model fills.
std::vector<int> Service::text_ids(const Prompt& prompt, const std::string& suffix) const {
    if (const auto* given = std::get_if<std::vector<int>>(&prompt)) return *given;
    const std::string& text = std::get<std::string>(prompt);
    check_length(text, "prompt");
    check_length(suffix, "suffix");
    const Tokenizer& tokenizer = model_->tokenizer();
    if (suffix.empty()) return tokenizer.encode_from_start(text);
    const auto ids = encode_gap(tokenizer, text, suffix);
    if (!ids) throw not_supported("this model has no tokens for fill-in-the-middle", "suffix");
    return *ids;
}

void Service::check_ids(const std::vector<int>& ids, const char* param) const {
    if (ids.empty()) throw bad_request("the prompt is empty", param);
    for (const int id : ids)
        if (id >= model_->files().config.vocab)
            throw bad_request("the prompt has ids that the model does not know", param);
    if (int(ids.size()) >= model_->context()) throw too_long(std::to_string(ids.size()), param);
}

// The requests for the first choice of each prompt.
std::vector<Request> Service::requests_of(const CompletionRequest& asked) const {
    Request request;
    request.answer.sampling = sampling_of(asked, defaults_);
    request.answer.drafts = asked.drafts;
    request.answer.with_logprobs = asked.with_logprobs;
    request.answer.alternatives = asked.alternatives;
    request.answer.edit_logits = bias_edit(asked.logit_bias, model_->files().config.vocab);
    request.max_tokens = asked.max_tokens.value_or(-1);
    if (!asked.ignores_eos) request.eos_ids = model_->eos_ids();
    request.stops = asked.stops;
    request.continues_text = asked.echo || begins_answer(asked);
    std::vector<Request> requests;
    const auto add = [&](std::vector<int> ids, const char* param) {
        check_ids(ids, param);
        request.prompt = std::move(ids);
        requests.push_back(request);
    };
    if (asked.is_chat) add(chat_ids(asked), "messages");
    for (const Prompt& prompt : asked.prompts) add(text_ids(prompt, asked.suffix), "prompt");
    return requests;
}

}  // namespace aerie
