#include "serve/requests/request.h"

#include <algorithm>
#include <charconv>
#include <climits>

#include "core/utf8.h"
#include "serve/requests/messages.h"
#include "serve/requests/other_members.h"
#include "serve/requests/problem.h"
#include "serve/requests/request_fields.h"

namespace aerie {

namespace {

constexpr int kMaxChoices = 8, kMaxTokens = 1 << 24;
constexpr size_t kMaxPrompts = 64, kMaxStops = 16, kMaxStopBytes = 1024, kMaxBiases = 1024,
                 kMaxKeyBytes = 1024;

std::string stop_of(const Json& value) {
    const std::string* text = value.string();
    if (!text)
        throw bad_request("stop must be a string or a list of strings", "stop", "invalid_type");
    if (text->empty() || text->size() > kMaxStopBytes)
        throw bad_request(
            "stop must be strings of 1 to " + std::to_string(kMaxStopBytes) + " bytes", "stop");
    return *text;
}

std::vector<std::string> stops_of(const Json* value) {
    std::vector<std::string> stops;
    if (!value) return stops;
    if (!value->array()) return {stop_of(*value)};
    if (value->array()->size() > kMaxStops)
        throw bad_request("stop has more than " + std::to_string(kMaxStops) + " strings", "stop");
    for (const Json& stop : *value->array()) stops.push_back(stop_of(stop));
    return stops;
}

int token_of(const std::string& text) {
    int token = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, token);
    if (error != std::errc() || rest != end || token < 0)
        throw bad_request("the keys of logit_bias are ids of tokens", "logit_bias");
    return token;
}

std::vector<std::pair<int, float>> biases_of(const Json* value) {
    std::vector<std::pair<int, float>> biases;
    if (!value) return biases;
    RequestFields fields(*value, "logit_bias");
    if (value->object()->size() > kMaxBiases)
        throw bad_request("logit_bias has more than " + std::to_string(kMaxBiases) + " tokens",
                          "logit_bias");
    for (const auto& [token, bias] : *value->object())
        if (const auto by = fields.number(token, -100, 100))
            biases.emplace_back(token_of(token), *by);
    return biases;
}

std::optional<int> to_int(const std::optional<int64_t>& value) {
    return value ? std::optional(int(*value)) : std::nullopt;
}

// llama.cpp has another name for it.
std::optional<float> repetition_penalty_of(RequestFields& fields) {
    constexpr double kLeast = 0.01, kMost = 100;
    const auto ours = fields.number("repetition_penalty", kLeast, kMost),
               theirs = fields.number("repeat_penalty", kLeast, kMost);
    if (ours && theirs)
        throw bad_request("repetition_penalty and repeat_penalty exclude each other",
                          "repeat_penalty");
    return ours ? ours : theirs;
}

// The most tokens of an answer; -1: to the end of the context.
std::optional<int> limit_of(RequestFields& fields, const std::string& name) {
    return to_int(fields.whole(name, -1, kMaxTokens));
}

// The seed; none if it is missing or -1, which asks for a random one in other servers.
std::optional<uint64_t> seed_of(RequestFields& fields) {
    const auto seed = fields.whole("seed", INT64_MIN, INT64_MAX);
    return seed && *seed != -1 ? std::optional(uint64_t(*seed)) : std::nullopt;
}

// How many of the likeliest tokens count; 0 and -1: all.
std::optional<int> top_k_of(RequestFields& fields) {
    const auto top_k = to_int(fields.whole("top_k", -1, 1 << 20));
    return top_k ? std::optional(std::max(0, *top_k)) : std::nullopt;
}

// Reads the members that both kinds of completions have.
void read_options(RequestFields& fields, CompletionRequest& request) {
    request.model = fields.text("model").value_or("");
    request.choices = int(fields.whole("n", 1, kMaxChoices).value_or(1));
    request.seed = seed_of(fields);
    request.max_tokens = limit_of(fields, "max_tokens");
    if (const auto most = limit_of(fields, "max_completion_tokens")) {
        if (request.max_tokens && *request.max_tokens != *most)
            throw bad_request("max_tokens and max_completion_tokens differ",
                              "max_completion_tokens");
        request.max_tokens = *most;
    }
    const auto predict = limit_of(fields, "n_predict");  // llama.cpp's name for it
    if (!request.max_tokens) request.max_tokens = predict;
    request.temperature = fields.number("temperature", 0, 2);
    request.top_p = fields.number("top_p", 0, 1);
    request.min_p = fields.number("min_p", 0, 1);
    request.top_k = top_k_of(fields);
    request.repetition_penalty = repetition_penalty_of(fields);
    request.frequency_penalty = fields.number("frequency_penalty", -2, 2).value_or(0);
    request.presence_penalty = fields.number("presence_penalty", -2, 2).value_or(0);
    request.stops = stops_of(fields.take("stop"));
    request.logit_bias = biases_of(fields.take("logit_bias"));
    request.stream = fields.flag("stream").value_or(false);
    request.drafts = fields.flag("draft").value_or(true);
    request.provenance = fields.flag("provenance").value_or(false);
    request.ignores_eos = fields.flag("ignore_eos").value_or(false);
    if (const Json* options = fields.take("stream_options")) {
        if (!request.stream)
            throw bad_request("stream_options need stream: true", "stream_options");
        RequestFields streaming(*options, "stream_options");
        request.include_usage = streaming.flag("include_usage").value_or(false);
        streaming.rest(request.ignored);
    }
    request.cache_key = fields.text("prompt_cache_key").value_or("");
    if (request.cache_key.size() > kMaxKeyBytes)
        throw bad_request(
            "prompt_cache_key has more than " + std::to_string(kMaxKeyBytes) + " bytes",
            "prompt_cache_key");
    check_other_members(fields);
}

// Further variables of the chat template: an object, or null.
Json template_kwargs_of(RequestFields& fields) {
    constexpr size_t kMost = 64;
    const std::string name = "chat_template_kwargs";
    const Json* kwargs = fields.take(name);
    if (!kwargs) return {};
    if (!kwargs->object()) throw bad_request(name + " must be an object", name, "invalid_type");
    if (kwargs->object()->size() > kMost)
        throw bad_request(name + " has more than " + std::to_string(kMost) + " members", name);
    return *kwargs;
}

// Reads `join`. True: the reply reports the name of the conversation. Such a name: that
// conversation is continued.
void read_join(RequestFields& fields, CompletionRequest& request) {
    const Json* value = fields.take("join");
    if (!value) return;
    if (value->string())
        request.joined = *value->string();
    else if (!value->boolean())
        throw bad_request("join must be true, false or a name from an earlier reply", "join",
                          "invalid_type");
    request.join = value->string() || *value->boolean();
}

// vLLM's members that ask to go on with the assistant's last message, which is what happens here if
// the last message is the assistant's, and only then.
void check_continuation(RequestFields& fields, const CompletionRequest& request) {
    const bool ends = !fields.flag("add_generation_prompt").value_or(true);
    const bool goes_on = fields.flag("continue_final_message").value_or(false);
    const Json& last = request.messages.array()->back();
    if ((ends || goes_on) && *last.find("role")->string() != "assistant")
        throw not_supported("an answer that goes on needs a last message of the assistant",
                            goes_on ? "continue_final_message" : "add_generation_prompt");
}

Problem wrong_prompt() {
    return bad_request("prompt must be a string, a list of token ids, or a list of these", "prompt",
                       "invalid_type");
}

Prompt prompt_of(const Json& value) {
    if (value.string()) return *value.string();
    if (!value.array() || value.array()->empty()) throw wrong_prompt();
    std::vector<int> ids;
    for (const Json& element : *value.array()) {
        int64_t id = 0;
        if (!element.integer(id) || id < 0 || id > INT_MAX) throw wrong_prompt();
        ids.push_back(int(id));
    }
    return ids;
}

// The prompts: one, or a list of them.
std::vector<Prompt> prompts_of(const Json* value) {
    if (!value) throw bad_request("the prompt is missing", "prompt", "missing_required_parameter");
    const Json::Array* list = value->array();
    if (!list || list->empty() || !(list->front().string() || list->front().array()))
        return {prompt_of(*value)};
    if (list->size() > kMaxPrompts)
        throw bad_request("more than " + std::to_string(kMaxPrompts) + " prompts", "prompt");
    std::vector<Prompt> prompts;
    for (const Json& prompt : *list) prompts.push_back(prompt_of(prompt));
    return prompts;
}

}  // namespace

CompletionRequest parse_chat_request(std::string_view json) {
    const Json body = parse_body(json);
    RequestFields fields(body, "");
    CompletionRequest request;
    request.is_chat = true;
    request.messages = messages_of(fields.take("messages"), request.ignored);
    read_options(fields, request);
    check_continuation(fields, request);
    if (request.max_tokens == 0) request.max_tokens = -1;  // some front ends mean "no limit"
    request.with_logprobs = fields.flag("logprobs").value_or(false);
    if (const auto top = fields.whole("top_logprobs", 0, 20)) {
        if (!request.with_logprobs && *top > 0)
            throw bad_request("top_logprobs need logprobs: true", "top_logprobs");
        request.alternatives = int(*top);
    }
    read_join(fields, request);
    request.template_kwargs = template_kwargs_of(fields);
    fields.rest(request.ignored);
    return request;
}

CompletionRequest parse_completion_request(std::string_view json) {
    constexpr int kDefaultTokens = 16;  // OpenAI's default
    const Json body = parse_body(json);
    RequestFields fields(body, "");
    CompletionRequest request;
    request.prompts = prompts_of(fields.take("prompt"));
    read_options(fields, request);
    if (!request.max_tokens) request.max_tokens = kDefaultTokens;
    if (const auto top = fields.whole("logprobs", 0, 20)) {
        request.with_logprobs = true;
        request.alternatives = int(*top);
    }
    request.echo = fields.flag("echo").value_or(false);
    if (request.echo && request.with_logprobs)
        throw not_supported("echo with logprobs is not supported: prompts are not scored", "echo");
    request.suffix = fields.text("suffix").value_or("");
    if (!request.suffix.empty() &&
        (request.prompts.size() > 1 || !std::holds_alternative<std::string>(request.prompts[0])))
        throw bad_request("a suffix goes with one prompt, which is a text", "suffix");
    fields.only("best_of", "1");
    fields.rest(request.ignored);
    return request;
}

TokenizeRequest parse_tokenize_request(std::string_view json) {
    const Json body = parse_body(json);
    RequestFields fields(body, "");
    TokenizeRequest request;
    request.model = fields.text("model").value_or("");
    const Json* messages = fields.take("messages");
    const auto content = fields.text("content");
    if (bool(messages) == bool(content))
        throw bad_request("give content or messages", "content", "missing_required_parameter");
    if (messages) request.messages = messages_of(messages, request.ignored);
    request.template_kwargs = template_kwargs_of(fields);
    request.content = content.value_or("");
    if (request.content.size() > kMaxTokenizedBytes)
        throw bad_request("content has more than 1 MB: cut it into several requests", "content");
    request.from_start = fields.flag("add_special").value_or(false);
    fields.rest(request.ignored);
    return request;
}

}  // namespace aerie
