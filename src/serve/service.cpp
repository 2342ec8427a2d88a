#include "serve/service.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <iterator>

#include "core/error.h"
#include "core/utf8.h"
#include "serve/loading.h"
#include "serve/requests/problem.h"
#include "talk/model_sampling.h"

namespace aerie {

namespace {

constexpr int kWorkers = 2;
const Log kNoLog;
const Problem kStopping(503, "server_stopping", "the server is being stopped");
const Problem kTooMany(429, "queue_full", "too many requests are waiting; try again later");
constexpr size_t kMaxUnreadBytes = 64 << 20;  // bodies that no worker has read yet

// The part of an error in the shape of OpenAI's API that a log may have: its code and the member
// that is wrong. The message may quote what a client wrote.
std::string reason_of(const std::string& body) {
    const Json json = Json::parse(body, "reply");
    const Json* error = json.find("error");
    std::string reason;
    for (const char* name : {"code", "param"})
        if (const Json* value = error ? error->find(name) : nullptr; value && value->string())
            reason += ", " + *value->string();
    return reason;
}

// Hands a reply on, and counts its status. Failures go to a log, which may be null.
class Counted : public Exchange {
  public:
    Counted(std::shared_ptr<Exchange> to, Metrics& metrics, const Endpoint& endpoint,
            const Log& failures)
        : to_(std::move(to)), metrics_(metrics), endpoint_(endpoint), failures_(failures) {}

    void reply(HttpReply reply) override {
        if (reply.status >= 400 && failures_ && !is_counted_)
            failures_(std::string(endpoint_.name) + ": " + std::to_string(reply.status) +
                      reason_of(reply.body));
        count(reply.status);
        to_->reply(std::move(reply));
    }
    void begin_stream() override {
        count(200);
        to_->begin_stream();
    }
    void begin_whole(size_t bytes) override {
        count(200);
        to_->begin_whole(bytes);
    }
    void say(std::string_view piece) override { to_->say(piece); }
    void end() override { to_->end(); }
    size_t unsent() const override { return to_->unsent(); }
    bool is_gone() const override { return to_->is_gone(); }
    void set_waiter(std::shared_ptr<Waiter> waiter) override { to_->set_waiter(std::move(waiter)); }
    void abandon() noexcept override { to_->abandon(); }

  private:
    // Counts once, though a call that found no memory is made again.
    void count(int status) {
        if (std::exchange(is_counted_, true)) return;
        metrics_.count_request(std::string(endpoint_.name), status);
    }

    const std::shared_ptr<Exchange> to_;
    Metrics& metrics_;
    const Endpoint& endpoint_;
    const Log& failures_;
    bool is_counted_ = false;
};

// Tells an answer that its client has gone or has room again.
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

// The shortest number that is this float: 0.7, not 0.699999988079071.
Json shortest(float value) {
    char digits[32];
    double exact = double(value);
    const auto written = std::to_chars(digits, std::end(digits), value);
    std::from_chars(digits, written.ptr, exact);
    return exact;
}

// How answers are sampled where a request does not say: members as in requests.
Json sampling_json(const Sampling& sampling) {
    const Filters& filters = sampling.filters;
    const Penalties& penalties = sampling.penalties;
    return Json::Object{{"temperature", shortest(filters.temperature)},
                        {"top_k", filters.top_k},
                        {"top_p", shortest(filters.top_p)},
                        {"min_p", shortest(filters.min_p)},
                        {"repetition_penalty", shortest(penalties.repetition)},
                        {"frequency_penalty", shortest(penalties.frequency)},
                        {"presence_penalty", shortest(penalties.presence)}};
}

}  // namespace

// A request that waits for a worker, or is being read by one.
class Service::Reading : public Task,
                         public Waiter,
                         public std::enable_shared_from_this<Service::Reading> {
  public:
    Reading(Service& service, HttpRequest request, std::shared_ptr<Exchange> exchange)
        : service_(service), request_(std::move(request)), exchange_(std::move(exchange)) {}

    // Returns false if as many requests wait as may, or if more than 64 MB are not read yet.
    // Earlier requests keep their places, whichever worker is the quickest, since unread ones count
    // against the room of the schedule.
    bool wait_with_others() {
        is_unread_ = request_.endpoint->run == Endpoint::Run::in_turn;
        if (is_unread_ && service_.unread_++ >= service_.schedule_.room()) return end(false);
        const size_t bytes = request_.body.size();
        try {
            return end(
                service_.workers_.give(shared_from_this(), bytes, service_.options_.waiting));
        } catch (const std::bad_alloc&) {
            end(false);
            throw;
        }
    }

    void run() override {
        service_.handle_now(request_, exchange_);
        std::string().swap(request_.body);
        end(false);
    }
    void gone() override {
        if (service_.workers_.remove(*this)) end(false);
    }
    void has_room() override {}

  private:
    // The request no longer counts as unread, unless it `goes_on` waiting. Returns `goes_on`.
    bool end(bool goes_on) {
        if (!goes_on && is_unread_.exchange(false)) --service_.unread_;
        return goes_on;
    }

    Service& service_;
    HttpRequest request_;
    const std::shared_ptr<Exchange> exchange_;
    std::atomic<bool> is_unread_ = false;
};

Service::Service(std::shared_ptr<SharedModel> model, ServiceOptions options)
    : model_(std::move(model)),
      options_(std::move(options)),
      defaults_(generation_config(model_->files().target)),
      started_(std::time(nullptr)),
      cache_(model_),
      context_{model_,
               cache_,
               metrics_,
               reply_room_,
               options_.model_name,
               model_->options().draft.method,
               options_.learning,
               options_.log,
               options_.requests_log},
      schedule_({options_.parallel, std::max(options_.parallel, model_->options().sequences),
                 options_.waiting}),
      workers_(kWorkers, kMaxUnreadBytes) {}

void Service::count_refused(const Problem& problem) {
    metrics_.count_request("refused", problem.status);
    if (options_.requests_log)
        options_.requests_log("refused: " + std::to_string(problem.status) + ", " + problem.what());
}

void Service::handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
    const Endpoint& endpoint = *request.endpoint;
    const bool is_noted = endpoint.access != Endpoint::Access::monitor;
    exchange = std::make_shared<Counted>(std::move(exchange), metrics_, endpoint,
                                         is_noted ? options_.requests_log : kNoLog);
    if (endpoint.run == Endpoint::Run::at_once) return handle_now(request, exchange);
    // A load balancer tries another replica after a 503.
    if (is_draining_ && endpoint.run == Endpoint::Run::in_turn)
        return exchange->reply({.status = kStopping.status, .body = kStopping.json()});
    const auto reading = std::make_shared<Reading>(*this, std::move(request), exchange);
    exchange->set_waiter(reading);
    if (!reading->wait_with_others())
        exchange->reply({.status = kTooMany.status, .body = kTooMany.json()});
}

// Whatever goes wrong, the exchange gets a reply, or is abandoned.
void Service::handle_now(const HttpRequest& request,
                         const std::shared_ptr<Exchange>& exchange) noexcept {
    try {
        if (!exchange->is_gone()) (this->*request.endpoint->answer)(request, exchange);
    } catch (...) {
        tell_failure(*exchange, ReplyState::none, options_.log);
    }
}

void Service::page(const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
    exchange->reply(page_reply(options_.page, options_.page_policy));
}

void Service::health(const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
    const bool ok = !is_draining_;
    Json state = Json::Object{{"status", ok ? "ok" : "draining"}};
    // A page that asks every few seconds sees by it that another server has come.
    if (ok) state.set("started", started_);
    exchange->reply({.status = ok ? 200 : 503, .body = state.dump()});
}

// The fields of the reply, which the sockets add, are all that it says.
void Service::preflight(const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
    exchange->reply({.status = 204});
}

std::string drafter_of(const SharedModel& model) {
    std::string drafter = model.options().draft.method;
    if (model.can_draft() && model.files().head)
        drafter += ", " + model.options().head.filename().string();
    return drafter;
}

// Facts about the model that a page shows.
Json Service::about_model() const {
    const LoadOptions& options = model_->options();
    const ModelFiles& files = model_->files();
    return Json::Object{{"architecture", files.config.architecture},
                        {"weights", to_string(files.target_types(options))},
                        {"device", model_->device().description},
                        {"drafter", drafter_of(*model_)},
                        {"can_draft", model_->can_draft()},
                        {"chat", !model_->tokenizer().chat_template().text.empty()},
                        {"sampling", sampling_json(model_sampling(defaults_))}};
}

Json Service::model_json() const {
    return Json::Object{{"id", options_.model_name},
                        {"object", "model"},
                        {"created", started_},
                        {"owned_by", "aerie"},
                        {"max_model_len", model_->context()},
                        {"aerie", about_model()}};
}

void Service::models(const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
    const Json list = Json::Object{{"object", "list"}, {"data", Json::Array{model_json()}}};
    exchange->reply({.body = list.dump()});
}

void Service::model(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
    if (const std::string name = rest_of_path(*request.endpoint, request.target);
        name != options_.model_name)
        throw no_such_model();
    exchange->reply({.body = model_json().dump()});
}

void Service::metrics(const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
    const int read = schedule_.waiting();  // first, so that no request is counted twice
    const int waiting = read + workers_.waiting();
    exchange->reply(
        {.type = "text/plain; version=0.0.4; charset=utf-8",
         .body = metrics_.text({schedule_.begun(), waiting, cache_.idle(), connections_,
                                failed_connections_, model_->pages(), model_->used_pages()},
                               model_->pass_counts())});
}

// Saved configurations of clients name any model, such as "gpt-4o"; one model is served.
void Service::check_model(const std::string& name) const {
    if (options_.strict_model && !name.empty() && name != options_.model_name)
        throw no_such_model();
}

Problem Service::no_such_model() const {
    return {
        404, "model_not_found",
        "there is no model of that name here: the only one is " + in_quotes(options_.model_name),
        "model"};
}

// Names each member once, however many requests have it. Positions in lists are left out.
void Service::tell_ignored(const std::vector<std::string>& paths) {
    constexpr size_t kMost = 200;
    for (const std::string& path : paths) {
        std::string name;
        for (const char c : path)
            if (!(c >= '0' && c <= '9' && name.rfind('[') + 1 > name.rfind(']') + 1)) name += c;
        const std::lock_guard lock(ignored_mutex_);
        if (ignored_.size() < kMost && ignored_.insert(name).second && options_.requests_log)
            options_.requests_log("requests have a member '" + name +
                                  "', which has no effect here");
    }
}

void Service::chat(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
    complete(parse_chat_request(request.body), request, exchange);
}

void Service::completions(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
    complete(parse_completion_request(request.body), request, exchange);
}

void Service::complete(CompletionRequest asked, const HttpRequest& request,
                       const std::shared_ptr<Exchange>& exchange) {
    check_model(asked.model);
    if (exchange->is_gone()) return;
    asked.key = request.key;
    tell_ignored(asked.ignored);
    std::vector<Request> requests = requests_of(asked);
    if (!asked.stream) ReplyRoom::check(reply_bytes(asked, requests, model_->context()));
    asked.messages = {};  // They may be 8 MB for each request that waits.
    if (!asked.echo) asked.prompts = {};
    asked.template_kwargs = {};
    asked.suffix = asked.joined = {};
    asked.ignored = {};
    const auto answering = std::make_shared<Answering>(
        context_, std::move(asked), std::move(requests), exchange, request.received);
    exchange->set_waiter(std::make_shared<ClientWatch>(schedule_, answering));
    if (!schedule_.add(answering)) throw kTooMany;
}

}  // namespace aerie
