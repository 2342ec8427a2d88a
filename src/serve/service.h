// Answers all requests to a server, without the sockets.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "jinja/jinja.h"
#include "model/config.h"
#include "serve/answering.h"
#include "serve/endpoints.h"
#include "serve/metrics.h"
#include "serve/prompt_cache.h"
#include "serve/request_handler.h"
#include "serve/requests/problem.h"
#include "serve/schedule.h"
#include "serve/worker_pool.h"
#include "talk/learning.h"

namespace aerie {

struct ServiceOptions {
    std::string model_name;              // as clients see it
    std::string page;                    // the HTML at "/"
    std::string page_policy;             // its Content-Security-Policy
    int parallel = 4;                    // requests at a time
    int waiting = 64;                    // requests that may wait; the next one is refused
    bool strict_model = false;           // requests that name another model are refused
    std::shared_ptr<Learning> learning;  // learns from requests with a key; may be null
    Log log;
    Log requests_log;  // gets a line for each request; may be null
};

class Service : public RequestHandler {
  public:
    // Talks beyond `parallel` (LoadOptions::sequences) are kept for their prefixes, or belong to
    // requests whose clients read slowly. Throws Error if the threads cannot be started.
    Service(std::shared_ptr<SharedModel> model, ServiceOptions options);

    void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override;
    void count_refused(const Problem& problem) override;
    void count_failed_connection() noexcept override { ++failed_connections_; }
    void drain() override { is_draining_ = true; }
    void give_up_all() override { schedule_.give_up_all(); }
    void set_connections(int count) override { connections_ = count; }

  private:
    class Reading;
    friend std::span<const Endpoint> endpoints();

    // The functions of the endpoints (Endpoint::answer).
    void page(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange);
    void health(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange);
    void metrics(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange);
    void models(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange);
    void model(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange);
    void tokenize(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange);
    void chat(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange);
    void completions(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange);
    void preflight(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange);

    void handle_now(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) noexcept;
    void complete(CompletionRequest asked, const HttpRequest& request,
                  const std::shared_ptr<Exchange>& exchange);
    Json about_model() const;
    Json model_json() const;
    void check_model(const std::string& name) const;
    Problem no_such_model() const;
    void tell_ignored(const std::vector<std::string>& paths);
    jinja::Rendered rendered(const Json& messages, const Json& kwargs) const;
    Problem too_long(const std::string& tokens, const char* param) const;
    void check_length(const std::string& text, const char* param) const;
    std::vector<int> joined(const std::string& name, std::vector<int> ids) const;
    std::vector<int> chat_ids(const CompletionRequest& asked) const;
    std::vector<int> text_ids(const Prompt& prompt, const std::string& suffix) const;
    void check_ids(const std::vector<int>& ids, const char* param) const;
    std::vector<Request> requests_of(const CompletionRequest& asked) const;

    const std::shared_ptr<SharedModel> model_;
    const ServiceOptions options_;
    const GenerationConfig defaults_;
    const int64_t started_;
    Metrics metrics_;
    PromptCache cache_;
    ReplyRoom reply_room_;
    RequestContext context_;
    std::atomic<bool> is_draining_ = false;
    std::atomic<int> connections_ = 0, failed_connections_ = 0;
    std::mutex ignored_mutex_;
    std::set<std::string> ignored_;  // members of requests that the log has named
    std::atomic<int> unread_ = 0;    // requests for completions that no worker has read yet
    Schedule schedule_;              // its threads use all of the above
    WorkerPool workers_;             // and these use the schedule
};

// The method that drafts and the head that it uses, if any: "eagle2, MODEL-eagle".
std::string drafter_of(const SharedModel& model);
// The way in which an answer's tokens are chosen. Each value is the client's, else as
// model_sampling() says. Throws Problem.
Sampling sampling_of(const CompletionRequest& asked, const GenerationConfig& defaults);
// Adds the biases to the logits of their tokens; empty if there are none. Throws Problem if a token
// is not in the vocabulary.
LogitEdit bias_edit(std::vector<std::pair<int, float>> biases, int vocab);

}  // namespace aerie
