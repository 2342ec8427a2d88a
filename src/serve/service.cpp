#include "serve/service.h"

#include <ctime>

#include "core/clock.h"
#include "core/error.h"
#include "core/platform.h"
#include "serve/requests/problem.h"
#include "text/chat_template.h"

namespace aerie {

namespace {

constexpr int kClerks = 2;

const char* path_of(Endpoint endpoint) {
    switch (endpoint) {
        case Endpoint::page:
            return "/";
        case Endpoint::health:
            return "/health";
        case Endpoint::metrics:
            return "/metrics";
        case Endpoint::models:
        case Endpoint::model:
            return "/v1/models";
        case Endpoint::tokenize:
            return "/tokenize";
        case Endpoint::chat:
            return "/v1/chat/completions";
        case Endpoint::completions:
            return "/v1/completions";
        case Endpoint::preflight:
            return "preflight";
    }
    return "?";
}

// Counts the reply of a request as it passes.
class Counted : public Exchange {
  public:
    Counted(std::shared_ptr<Exchange> to, Metrics& metrics, Endpoint endpoint)
        : to_(std::move(to)), metrics_(metrics), endpoint_(endpoint) {}

    void reply(HttpReply reply) override {
        metrics_.count_request(path_of(endpoint_), reply.status);
        to_->reply(std::move(reply));
    }
    void begin_stream() override {
        metrics_.count_request(path_of(endpoint_), 200);
        to_->begin_stream();
    }
    void say(std::string_view piece) override { to_->say(piece); }
    void end() override { to_->end(); }
    size_t unsent() const override { return to_->unsent(); }
    void tell(std::shared_ptr<Waiter> waiter) override { to_->tell(std::move(waiter)); }

  private:
    const std::shared_ptr<Exchange> to_;
    Metrics& metrics_;
    const Endpoint endpoint_;
};

// What a client does is told to the answer that it waits for.
class ClientWatch : public Waiter {
  public:
    ClientWatch(Schedule& schedule, std::shared_ptr<Answering> answering)
        : schedule_(schedule), answering_(std::move(answering)) {}

    void gone() override {
        answering_->client_gone();
        if (!schedule_.remove(answering_)) schedule_.resume(answering_);
    }
    void has_room() override { schedule_.resume(answering_); }

  private:
    Schedule& schedule_;
    const std::shared_ptr<Answering> answering_;
};

}  // namespace

Service::Service(std::shared_ptr<SharedModel> model, ServiceOptions options)
    : model_(std::move(model)),
      options_(std::move(options)),
      defaults_(generation_config(model_->files().target)),
      started_(std::time(nullptr)),
      shelf_(model_),
      shop_{model_,      shelf_, metrics_, options_.model_name, model_->options().draft.method,
            options_.log},
      schedule_({options_.parallel, std::max(options_.parallel, model_->options().sequences),
                 options_.waiting}),
      clerks_(kClerks) {}

void Service::handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
    exchange = std::make_shared<Counted>(std::move(exchange), metrics_, request.endpoint);
    switch (request.endpoint) {
        case Endpoint::tokenize:
        case Endpoint::chat:
        case Endpoint::completions:
            clerks_.give(
                [this, request = std::move(request), exchange] { handle_now(request, exchange); });
            return;
        default:
            handle_now(request, exchange);
    }
}

void Service::handle_now(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
    HttpReply problem;
    try {
        answer(request, exchange);
        return;
    } catch (const Problem& refused) {
        problem = {.status = refused.status, .body = refused.json()};
    } catch (const std::exception& error) {
        options_.log(error.what());
        problem = {
            .status = 500,
            .body = Problem(500, "internal_error", "the server failed; its log says why").json()};
    }
    exchange->reply(std::move(problem));
}

void Service::answer(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
    switch (request.endpoint) {
        case Endpoint::page:
            return exchange->reply({.type = "text/html; charset=utf-8",
                                    .body = options_.page,
                                    .fields = {{"Content-Security-Policy", options_.page_policy},
                                               {"Referrer-Policy", "no-referrer"}}});
        case Endpoint::health:
            return exchange->reply(health());
        case Endpoint::metrics:
            return exchange->reply(metrics_page());
        case Endpoint::models:
            return exchange->reply(models());
        case Endpoint::model:
            check_model(model_in(request.target));
            return exchange->reply({.body = model_json().dump()});
        case Endpoint::tokenize:
            return exchange->reply(tokenize(request));
        case Endpoint::chat:
        case Endpoint::completions:
            return complete(request, exchange);
        case Endpoint::preflight:
            return exchange->reply({.status = 204});
    }
}

HttpReply Service::health() const {
    const bool ok = !is_draining_;
    return {.status = ok ? 200 : 503,
            .body = Json(Json::Object{{"status", ok ? "ok" : "draining"}}).dump()};
}

// For a page that shows it.
Json Service::about_model() const {
    const LoadOptions& options = model_->options();
    const ModelFiles& files = model_->files();
    std::string drafter = options.draft.method;
    if (model_->can_draft() && files.head) drafter += ", " + options.head.filename().string();
    return Json::Object{{"architecture", files.config.architecture},
                        {"weights", to_string(files.target_types(options))},
                        {"device", model_->device().description},
                        {"drafter", drafter},
                        {"can_draft", model_->can_draft()},
                        {"chat", !model_->tokenizer().chat_template().text.empty()}};
}

Json Service::model_json() const {
    return Json::Object{{"id", options_.model_name},
                        {"object", "model"},
                        {"created", started_},
                        {"owned_by", "aerie"},
                        {"max_model_len", model_->context()},
                        {"aerie", about_model()}};
}

HttpReply Service::models() const {
    return {.body =
                Json(Json::Object{{"object", "list"}, {"data", Json::Array{model_json()}}}).dump()};
}

HttpReply Service::metrics_page() const {
    return {.type = "text/plain; version=0.0.4; charset=utf-8",
            .body = metrics_.text(
                {schedule_.begun(), schedule_.waiting(), shelf_.idle(), connections_})};
}

void Service::check_model(const std::string& name) const {
    if (!name.empty() && name != options_.model_name)
        throw Problem(404, "model_not_found", "there is no model of that name here", "model");
}

// Its messages are the client's, so what the template says of them is no secret.
std::vector<int> Service::chat_ids(const Json& messages) const {
    const Tokenizer& tokenizer = model_->tokenizer();
    if (tokenizer.chat_template().text.empty())
        throw bad_request("this model has no chat template: use /v1/completions", "messages");
    Conversation conversation;
    conversation.messages = messages;
    conversation.now = platform::local_time();
    try {
        return encode_chat(tokenizer, render_chat(tokenizer, conversation));
    } catch (const jinja::Refusal& refusal) {
        throw bad_request("the model's chat template: " + refusal.message(), "messages");
    }
}

HttpReply Service::tokenize(const HttpRequest& request) const {
    const TokenizeRequest asked = parse_tokenize_request(request.body);
    check_model(asked.model);
    const Tokenizer& tokenizer = model_->tokenizer();
    const std::vector<int> ids = !asked.messages.is_null() ? chat_ids(asked.messages)
                                 : asked.from_start ? tokenizer.encode_from_start(asked.content)
                                                    : tokenizer.encode(asked.content);
    return {.body = Json(Json::Object{{"tokens", Json::Array(ids.begin(), ids.end())},
                                      {"count", int64_t(ids.size())},
                                      {"max_model_len", model_->context()}})
                        .dump()};
}

std::vector<int> Service::prompt_ids(const CompletionRequest& asked) {
    std::vector<int> ids;
    if (asked.is_chat)
        ids = chat_ids(asked.messages);
    else if (const auto* given = std::get_if<std::vector<int>>(&asked.prompt))
        ids = *given;
    else
        ids = model_->tokenizer().encode_from_start(std::get<std::string>(asked.prompt));
    if (asked.join) ids = shelf_.joined(ids);
    const char* param = asked.is_chat ? "messages" : "prompt";
    if (ids.empty()) throw bad_request("the prompt is empty", param);
    for (const int id : ids)
        if (id >= model_->files().config.vocab)
            throw bad_request("the prompt has ids that the model does not know", param);
    if (int(ids.size()) >= model_->context())
        throw bad_request("the prompt has " + std::to_string(ids.size()) +
                              " tokens; a context of " + std::to_string(model_->context()) +
                              " has no room for it and an answer",
                          param, "context_length_exceeded");
    return ids;
}

Request Service::request_of(const CompletionRequest& asked) {
    Request request;
    request.prompt = prompt_ids(asked);
    request.answer.sampling = sampling_of(asked, defaults_);
    request.answer.drafts = asked.drafts;
    request.answer.with_logprobs = asked.with_logprobs;
    request.answer.alternatives = asked.alternatives;
    request.answer.edit_logits = bias_edit(asked.logit_bias, model_->files().config.vocab);
    request.max_tokens = asked.max_tokens.value_or(-1);
    if (!asked.ignores_eos) request.eos_ids = model_->eos_ids();
    request.stops = asked.stops;
    return request;
}

void Service::complete(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
    if (is_draining_) throw Problem(503, "server_stopping", "the server is being stopped");
    CompletionRequest asked = request.endpoint == Endpoint::chat
                                  ? parse_chat_request(request.body)
                                  : parse_completion_request(request.body);
    check_model(asked.model);
    Request first = request_of(asked);
    const auto answering = std::make_shared<Answering>(shop_, std::move(asked), std::move(first),
                                                       exchange, request.received);
    if (!schedule_.add(answering))
        throw Problem(429, "queue_full", "too many requests are waiting; try again later");
    exchange->tell(std::make_shared<ClientWatch>(schedule_, answering));
}

}  // namespace aerie
