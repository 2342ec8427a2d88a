#include "serve/requests/messages.h"

#include "serve/requests/other_members.h"
#include "serve/requests/problem.h"

namespace aerie {

namespace {

constexpr int kMaxMessages = 10'000;

// The text of a message: a string, or a list of parts that are text.
std::string content_of(const Json* value, const std::string& path,
                       std::vector<std::string>& ignored) {
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
        part.rest(ignored);
    }
    return text;
}

Json message_of(const Json& value, const std::string& path, std::vector<std::string>& ignored) {
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
    Json message = Json::Object{
        {"role", role},
        {"content", is_silent ? "" : content_of(content, fields.path("content"), ignored)}};
    if (auto thoughts = fields.text("reasoning_content"))
        message.set("reasoning_content", std::move(*thoughts));
    fields.ignore({"name", "annotations", "refusal", "audio", "id"});
    const Json* calls = fields.take("tool_calls");
    if (calls && calls->dump() != "[]") throw no_tools(fields.path("tool_calls"));
    fields.only("function_call", "");
    fields.rest(ignored);
    return message;
}

}  // namespace

Json messages_of(const Json* value, std::vector<std::string>& ignored) {
    if (!value) throw bad_request("messages are missing", "messages", "missing_required_parameter");
    if (!value->array())
        throw bad_request("messages must be a list of messages", "messages", "invalid_type");
    if (value->array()->empty() || value->array()->size() > kMaxMessages)
        throw bad_request(
            "messages must be a list of 1 to " + std::to_string(kMaxMessages) + " messages",
            "messages");
    Json::Array messages;
    for (size_t i = 0; i < value->array()->size(); ++i)
        messages.push_back(
            message_of((*value->array())[i], "messages[" + std::to_string(i) + "]", ignored));
    return messages;
}

}  // namespace aerie
