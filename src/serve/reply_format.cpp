#include "serve/reply_format.h"

#include <chrono>
#include <random>

namespace aerie {

namespace {

std::string new_id(const std::string& prefix) {
    static constexpr char kDigits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    std::random_device random;
    std::string id = prefix;
    for (int i = 0; i < 24; ++i) id += kDigits[random() % 36];
    return id;
}

int64_t unix_time() {
    using std::chrono::system_clock;
    return system_clock::to_time_t(system_clock::now());
}

// No answer with FinishReason::cancelled comes here: its client is gone, or gets an error instead.
const char* reason(FinishReason finish) {
    return finish == FinishReason::stop ? "stop" : "length";
}

void add_if_there(Json& to, const char* name, Json value) {
    if (!value.is_null()) to.set(name, std::move(value));
}

}  // namespace

ReplyFormat::ReplyFormat(const CompletionRequest& request, const std::string& model)
    : is_chat_(request.is_chat),
      tells_usage_(request.include_usage),
      model_(model),
      id_(new_id(request.is_chat ? "chatcmpl-" : "cmpl-")),
      created_(unix_time()) {}

Json ReplyFormat::head(bool is_part) const {
    const char* object = !is_chat_ ? "text_completion"
                         : is_part ? "chat.completion.chunk"
                                   : "chat.completion";
    return Json::Object{{"id", id_}, {"object", object}, {"created", created_}, {"model", model_}};
}

std::string ReplyFormat::event(Json choices, const Json& usage) const {
    Json json = head(true);
    json.set("choices", std::move(choices));
    if (tells_usage_) json.set("usage", usage);
    return event_of(json);
}

std::string ReplyFormat::first(int choice) const {
    if (!is_chat_) return "";
    return event(
        Json::Array{Json::Object{
            {"index", choice},
            {"delta", Json::Object{{"role", "assistant"}, {"content", ""}, {"refusal", Json()}}},
            {"logprobs", Json()},
            {"finish_reason", Json()}}},
        {});
}

std::string ReplyFormat::part(int choice, Json logprobs, const AnswerDeltas::Delta& delta,
                              Json aerie) const {
    Json json(Json::Object{{"index", choice}});
    if (is_chat_)
        json.set("delta", Json::Object{{"content", delta.text}});
    else
        json.set("text", delta.text);
    json.set("logprobs", std::move(logprobs));
    json.set("finish_reason", Json());
    add_if_there(json, "aerie", std::move(aerie));
    return event(Json::Array{std::move(json)}, {});
}

std::string ReplyFormat::last(int choice, FinishReason finish, const Json& aerie) const {
    Json json(Json::Object{{"index", choice}});
    if (is_chat_)
        json.set("delta", Json::Object{});
    else
        json.set("text", "");
    json.set("logprobs", Json());
    json.set("finish_reason", reason(finish));
    add_if_there(json, "aerie", aerie);
    return event(Json::Array{std::move(json)}, {});
}

std::string ReplyFormat::usage(const Json& usage) const {
    return event(Json::Array{}, usage);
}

std::string ReplyFormat::begin_whole() const {
    std::string text = head(false).dump();
    text.back() = ',';  // in place of the closing brace
    return text + "\"choices\":[";
}

std::string ReplyFormat::choice(int choice, const std::string& text, FinishReason finish,
                                Json logprobs, Json aerie) const {
    Json json(Json::Object{{"index", choice}});
    if (is_chat_)
        json.set("message",
                 Json::Object{{"role", "assistant"}, {"content", text}, {"refusal", Json()}});
    else
        json.set("text", text);
    json.set("logprobs", std::move(logprobs));
    json.set("finish_reason", reason(finish));
    add_if_there(json, "aerie", std::move(aerie));
    return json.dump();
}

std::string ReplyFormat::end_whole(const Json& usage) const {
    return "],\"usage\":" + usage.dump() + "}";
}

Json Usage::json() const {
    return Json::Object{{"prompt_tokens", prompt},
                        {"completion_tokens", completion},
                        {"total_tokens", prompt + completion},
                        {"prompt_tokens_details", Json::Object{{"cached_tokens", reused}}}};
}

Json aerie_member(uint64_t seed, const GenerationResult& result, const std::string& drafter) {
    const Stats& stats = result.stats;
    const std::string why = why_hardly_drafted(stats);
    return Json::Object{{"seed", int64_t(seed)},
                        {"draft", drafter},
                        {"tokens", int64_t(result.ids.size())},
                        {"cycles", stats.cycles},
                        {"tau", stats.tau()},
                        {"tokens_per_second", stats.tokens_per_second()},
                        {"prefill_seconds", stats.prefill_seconds},
                        {"decode_seconds", stats.decode_seconds},
                        {"reused", result.reused},
                        {"accepted_by_depth", Json::Array(stats.accepted_by_depth.begin(),
                                                          stats.accepted_by_depth.end())},
                        {"drafted_tokens", stats.drafted_tokens()},
                        {"hardly_drafted", is_hardly_drafted(stats)},
                        {"why_hardly_drafted", why.empty() ? Json() : Json(why)}};
}

std::string event_of(const Json& json) {
    return "data: " + json.dump() + "\n\n";
}

}  // namespace aerie
