// Answers requests while the model is being loaded: 503 with the progress, and the page.
#pragma once

#include <mutex>
#include <string>

#include "serve/request_handler.h"

namespace aerie {

class Loading : public RequestHandler {
  public:
    // The HTML at "/" and its Content-Security-Policy.
    Loading(std::string page, std::string page_policy)
        : page_(std::move(page)), page_policy_(std::move(page_policy)) {}

    // The stage that replies name from now on, such as "loading MODEL: 43 of 98 MiB".
    void set_stage(const std::string& stage);

    void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override;
    void count_refused(const Problem&) override {}
    void count_failed_connection() noexcept override {}
    void set_connections(int) override {}
    void drain() override {}
    void give_up_all() override {}

  private:
    const std::string page_, page_policy_;
    std::mutex mutex_;
    std::string stage_ = "the model is being loaded";
};

// The reply of the page's own endpoint.
HttpReply page_reply(const std::string& page, const std::string& policy);

}  // namespace aerie
