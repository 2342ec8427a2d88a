#include "serve/loading.h"

#include "io/json.h"
#include "serve/requests/problem.h"

namespace aerie {

void Loading::set_stage(const std::string& stage) {
    const std::lock_guard lock(mutex_);
    stage_ = stage;
}

void Loading::handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
    const Endpoint& endpoint = *request.endpoint;
    if (endpoint.path == "/") return exchange->reply(page_reply(page_, page_policy_));
    if (endpoint.method == "OPTIONS") return exchange->reply({.status = 204});
    std::string stage;
    {
        const std::lock_guard lock(mutex_);
        stage = stage_;
    }
    HttpReply reply{.status = 503, .fields = {{"Retry-After", "1"}}};
    reply.body = endpoint.access == Endpoint::Access::monitor
                     ? Json(Json::Object{{"status", "loading"}, {"stage", stage}}).dump()
                     : Problem(503, "model_loading", "not ready yet: " + stage).json();
    exchange->reply(std::move(reply));
}

HttpReply page_reply(const std::string& page, const std::string& policy) {
    return {.type = "text/html; charset=utf-8",
            .body = page,
            .fields = {{"Content-Security-Policy", policy}, {"Referrer-Policy", "no-referrer"}}};
}

}  // namespace aerie
