// A request and who waits for its reply, as those see it who answer it. Nothing of sockets.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/requests/gate.h"

namespace aerie {

struct HttpReply {
    int status = 200;
    std::string type = "application/json", body = {};
    std::vector<std::pair<std::string, std::string>> fields = {};  // further ones
};

struct HttpRequest {
    Endpoint endpoint = Endpoint::page;
    std::string target, body;
    double received = 0;  // steady_seconds() when it was there as a whole
};

// Called by the thread of the sockets; does little.
class Waiter {
  public:
    virtual ~Waiter() = default;
    virtual void gone() = 0;      // nobody reads the reply any more
    virtual void has_room() = 0;  // little waits to be sent
};

constexpr size_t kSendBuffer = 256 << 10;  // bytes that may wait for a client to read them
constexpr size_t kLittleUnsent = 64 << 10;

// From any thread. A reply is whole, or a stream that is begun, said piece by piece, and ended.
// What is said to a client that is gone is dropped.
class Exchange {
  public:
    virtual ~Exchange() = default;
    virtual void reply(HttpReply reply) = 0;
    virtual void begin_stream() = 0;
    virtual void say(std::string_view piece) = 0;
    virtual void end() = 0;
    virtual size_t unsent() const = 0;  // bytes said that the client has not taken
    // Who is told until the reply has ended; at once, if the client is gone already.
    virtual void tell(std::shared_ptr<Waiter> waiter) = 0;
};

}  // namespace aerie
