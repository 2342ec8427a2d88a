// The interface through which connections ask their server. All of it is for the thread of the
// sockets.
#pragma once

#include <memory>
#include <string>

#include "serve/exchange.h"

namespace aerie {

class Connection;

class ConnectionOwner {
  public:
    virtual ~ConnectionOwner() = default;
    virtual const Endpoint& admit(const HttpHead& head) = 0;  // throws Problem
    virtual void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) = 0;
    virtual void refused(const Problem& problem) = 0;
    virtual void failed() noexcept = 0;  // counts a connection closed by the server's fault
    // Further header fields of the reply, also if the request is refused.
    virtual std::string fields_for(const HttpHead& head) = 0;
    virtual bool is_draining() const = 0;
    virtual bool has_place() const = 0;  // for a further connection
    // Adds `bytes`, which may be negative, to the bytes of bodies that are held for clients that
    // still send them. Returns the new sum.
    virtual size_t hold(ptrdiff_t bytes) noexcept = 0;
    virtual void closed(const std::shared_ptr<Connection>& connection) noexcept = 0;
};

}  // namespace aerie
