// The part of a server that answers its requests, as the sockets see it.
#pragma once

#include <memory>

#include "serve/exchange.h"

namespace aerie {

class RequestHandler {
  public:
    virtual ~RequestHandler() = default;

    // Returns at once; the exchange gets its reply from another thread, or before this returns.
    // Throws std::bad_alloc; the request is then forgotten.
    virtual void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) = 0;
    // Counts a request that was refused before it came here.
    virtual void count_refused(const Problem& problem) = 0;
    // Counts a connection that the server closed for a fault of its own, such as missing memory.
    virtual void count_failed_connection() noexcept = 0;
    virtual void set_connections(int count) = 0;

    // Requests that came before are still answered; new ones and /health get 503.
    virtual void drain() = 0;
    virtual void give_up_all() = 0;
};

}  // namespace aerie
