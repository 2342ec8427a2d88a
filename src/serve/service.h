// All that is asked of a server and answered, without the sockets.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "model/config.h"
#include "serve/answering.h"
#include "serve/clerks.h"
#include "serve/metrics.h"
#include "serve/schedule.h"
#include "serve/talk_shelf.h"

namespace aerie {

struct ServiceOptions {
    std::string model_name;   // as clients see it
    std::string page;         // the HTML of Endpoint::page
    std::string page_policy;  // its Content-Security-Policy
    int parallel = 4;         // requests at a time
    int waiting = 64;         // requests that may wait; the next one is refused
    std::function<void(const std::string&)> log;
};

class Service {
  public:
    // Talks beyond `parallel` (LoadOptions::sequences) are kept for their prefixes, or belong to
    // requests whose clients read slowly.
    Service(std::shared_ptr<SharedModel> model, ServiceOptions options);

    // Returns at once; the exchange gets its reply from another thread, or before.
    void handle(HttpRequest request, std::shared_ptr<Exchange> exchange);
    // A request that was refused before it came here.
    void count_refused(int status) { metrics_.count_request("refused", status); }

    // Requests that came are still answered; health is bad.
    void drain() { is_draining_ = true; }
    void give_up_all() { schedule_.give_up_all(); }
    void set_connections(int count) { connections_ = count; }

  private:
    void handle_now(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange);
    void answer(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange);
    void complete(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange);
    HttpReply health() const;
    HttpReply models() const;
    HttpReply tokenize(const HttpRequest& request) const;
    HttpReply metrics_page() const;
    Json about_model() const;
    Json model_json() const;
    void check_model(const std::string& name) const;
    std::vector<int> chat_ids(const Json& messages) const;
    std::vector<int> prompt_ids(const CompletionRequest& asked);
    Request request_of(const CompletionRequest& asked);

    const std::shared_ptr<SharedModel> model_;
    const ServiceOptions options_;
    const GenerationConfig defaults_;
    const int64_t started_;
    Metrics metrics_;
    TalkShelf shelf_;
    AnswerShop shop_;
    std::atomic<bool> is_draining_ = false;
    std::atomic<int> connections_ = 0;
    Schedule schedule_;  // its threads use all of the above
    Clerks clerks_;      // and these the schedule
};

// How an answer's tokens are chosen: what the client says, else the model's own defaults where it
// asks for sampling, else OpenAI's. Throws Problem.
Sampling sampling_of(const CompletionRequest& asked, const GenerationConfig& defaults);
// Adds to the logits of some tokens. Throws Problem if one is not the model's.
LogitEdit bias_edit(std::vector<std::pair<int, float>> biases, int vocab);

}  // namespace aerie
