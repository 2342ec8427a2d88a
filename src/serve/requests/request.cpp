#include "serve/requests/request.h"

#include <charconv>
#include <climits>

#include "core/utf8.h"
#include "serve/requests/problem.h"
#include "serve/requests/request_fields.h"

namespace aerie {

namespace {

constexpr int kMaxChoices = 8, kMaxMessages = 10'000, kMaxTokens = 1 << 24;
constexpr size_t kMaxStops = 16, kMaxStopBytes = 1024, kMaxBiases = 1024, kMaxKeyBytes = 1024;

// Members that describe the caller, or that are hints to other servers and change no answer here.
void ignore_hints(RequestFields& fields) {
    fields.ignore({"user", "metadata", "safety_identifier", "prompt_cache_retention",
                   "service_tier", "store", "cache_prompt", "parallel_tool_calls",
                   "reasoning_effort"});
}

Problem no_tools(const std::string& param) {
    return not_supported("tools are not supported yet", param);
}

// Takes a member that is about tools. Only `none`, the value that asks for no tools, is supported.
void take_no_tools(RequestFields& fields, const std::string& name, const Json& none) {
    const Json* given = fields.take(name);
    if (given && given->dump() != none.dump()) throw no_tools(fields.path(name));
}

std::string stop_of(const Json& value) {
    const std::string* text = value.string();
    if (!text || text->empty() || text->size() > kMaxStopBytes)
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

// Reads the members that both kinds of completions have.
void read_options(RequestFields& fields, CompletionRequest& request) {
    request.model = fields.text("model").value_or("");
    request.choices = int(fields.whole("n", 1, kMaxChoices).value_or(1));
    if (const auto seed = fields.whole("seed", INT64_MIN, INT64_MAX))
        request.seed = uint64_t(*seed);
    request.max_tokens = to_int(fields.whole("max_tokens", 1, kMaxTokens));
    request.temperature = fields.number("temperature", 0, 2);
    request.top_p = fields.number("top_p", 0, 1);
    request.min_p = fields.number("min_p", 0, 1);
    request.top_k = to_int(fields.whole("top_k", 0, 1 << 20));
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
        streaming.only("include_obfuscation", false);
        streaming.finish();
    }
    request.cache_key = fields.text("prompt_cache_key").value_or("");
    if (request.cache_key.size() > kMaxKeyBytes)
        throw bad_request(
            "prompt_cache_key has more than " + std::to_string(kMaxKeyBytes) + " bytes",
            "prompt_cache_key");
    ignore_hints(fields);
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

// The text of a message: a string, or a list of parts that are text.
std::string content_of(const Json* value, const std::string& path) {
    if (value && value->string()) return *value->string();
    if (!value || !value->array())
        throw bad_request(path + " must be a string or a list of texts", path, "invalid_type");
    std::string text;
    for (size_t i = 0; i < value->array()->size(); ++i) {
        RequestFields part((*value->array())[i], path + "[" + std::to_string(i) + "]");
        if (part.text("type").value_or("") != "text")
            throw not_supported(part.path("type") + ": only text is supported", part.path("type"));
        const auto piece = part.text("text");
        if (!piece)
            throw bad_request(part.path("text") + " is missing", part.path("text"),
                              "missing_required_parameter");
        text += *piece;
        part.finish();
    }
    return text;
}

Json message_of(const Json& value, const std::string& path) {
    RequestFields fields(value, path);
    std::string role = fields.text("role").value_or("");
    if (role == "developer") role = "system";
    if (role == "tool" || role == "function") throw no_tools(fields.path("role"));
    if (role != "system" && role != "user" && role != "assistant")
        throw bad_request(fields.path("role") + " must be system, developer, user or assistant",
                          fields.path("role"));
    const Json* content = fields.take("content");
    // The content is null in a message of an assistant that called tools; clients also keep such
    // messages without the calls.
    const bool is_silent = !content && role == "assistant" && value.find("content");
    std::string text = is_silent ? "" : content_of(content, fields.path("content"));
    fields.text("name");
    fields.only("annotations", Json::Array{});
    take_no_tools(fields, "tool_calls", Json::Array{});
    fields.finish();
    return Json::Object{{"role", std::move(role)}, {"content", std::move(text)}};
}

Json messages_of(const Json* value) {
    if (!value) throw bad_request("messages are missing", "messages", "missing_required_parameter");
    if (!value->array() || value->array()->empty() || value->array()->size() > kMaxMessages)
        throw bad_request(
            "messages must be a list of 1 to " + std::to_string(kMaxMessages) + " messages",
            "messages");
    Json::Array messages;
    for (size_t i = 0; i < value->array()->size(); ++i)
        messages.push_back(message_of((*value->array())[i], "messages[" + std::to_string(i) + "]"));
    return messages;
}

// The prompt: a text, ids, or a list that holds one of these.
Variant<std::string, std::vector<int>> prompt_of(const Json* value) {
    if (!value) throw bad_request("the prompt is missing", "prompt", "missing_required_parameter");
    if (value->string()) return *value->string();
    const auto wrong = [] {
        return bad_request("prompt must be a string or a list of token ids", "prompt",
                           "invalid_type");
    };
    if (!value->array() || value->array()->empty()) throw wrong();
    const Json& first = value->array()->front();
    if (first.string() || first.array()) {
        if (value->array()->size() > 1)
            throw not_supported("several prompts in a request are not supported: send one each",
                                "prompt");
        if (first.array() && (first.array()->empty() || first.array()->front().array()))
            throw wrong();
        return prompt_of(&first);
    }
    std::vector<int> ids;
    for (const Json& element : *value->array()) {
        int64_t id = 0;
        if (!element.integer(id) || id < 0 || id > INT_MAX) throw wrong();
        ids.push_back(int(id));
    }
    return ids;
}

// The only response format is text.
void check_format(const Json* format) {
    if (!format) return;
    RequestFields fields(*format, "response_format");
    const std::string type = fields.text("type").value_or("");
    if (type != "text")
        throw not_supported(
            "response_format: only {\"type\":\"text\"} is supported, not " + in_quotes(type),
            "response_format");
    fields.finish();
}

}  // namespace

CompletionRequest parse_chat_request(std::string_view json) {
    const Json body = parse_body(json);
    RequestFields fields(body, "");
    CompletionRequest request;
    request.is_chat = true;
    request.messages = messages_of(fields.take("messages"));
    read_options(fields, request);
    if (const auto most = fields.whole("max_completion_tokens", 1, kMaxTokens)) {
        if (request.max_tokens)
            throw bad_request("max_tokens and max_completion_tokens exclude each other",
                              "max_completion_tokens");
        request.max_tokens = int(*most);
    }
    request.with_logprobs = fields.flag("logprobs").value_or(false);
    if (const auto top = fields.whole("top_logprobs", 0, 20)) {
        if (!request.with_logprobs)
            throw bad_request("top_logprobs need logprobs: true", "top_logprobs");
        request.alternatives = int(*top);
    }
    read_join(fields, request);
    check_format(fields.take("response_format"));
    fields.only("modalities", Json::Array{"text"});
    take_no_tools(fields, "tools", Json::Array{});
    take_no_tools(fields, "tool_choice", "none");
    take_no_tools(fields, "functions", Json::Array{});
    take_no_tools(fields, "function_call", "none");
    fields.finish();
    return request;
}

CompletionRequest parse_completion_request(std::string_view json) {
    constexpr int kDefaultTokens = 16;  // OpenAI's default
    const Json body = parse_body(json);
    RequestFields fields(body, "");
    CompletionRequest request;
    request.prompt = prompt_of(fields.take("prompt"));
    read_options(fields, request);
    if (!request.max_tokens) request.max_tokens = kDefaultTokens;
    if (const auto top = fields.whole("logprobs", 0, 20)) {
        request.with_logprobs = true;
        request.alternatives = int(*top);
    }
    fields.only("echo", false);
    fields.only("best_of", 1);
    fields.only("suffix", "");
    fields.finish();
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
    if (messages) request.messages = messages_of(messages);
    request.content = content.value_or("");
    if (request.content.size() > kMaxTokenizedBytes)
        throw bad_request("content has more than 1 MB: cut it into several requests", "content");
    request.from_start = fields.flag("add_special").value_or(false);
    fields.finish();
    return request;
}

}  // namespace aerie
