// A request and the way to its client, as the code that answers it sees them. No sockets here.
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
    std::vector<std::pair<std::string, std::string>> fields = {};  // further header fields
};

struct HttpRequest {
    const Endpoint* endpoint = nullptr;
    std::string target, body;
    double received = 0;   // steady_seconds() when all of it had arrived
    std::string key = {};  // carried by its head; empty: none
};

// Learns about the client of an exchange. Called by the thread of the sockets, or within
// set_waiter(); must return soon.
class Waiter {
  public:
    virtual ~Waiter() = default;
    virtual void gone() = 0;      // nobody reads the reply any more
    virtual void has_room() = 0;  // little waits to be sent
};

constexpr size_t kSendBuffer = 256 << 10;  // bytes that may wait for a client to read them
constexpr size_t kLittleUnsent = 64 << 10;

// Takes the reply to one request, from any thread: at once by reply(), or piece by piece by
// begin_stream() or begin_whole(), then say(), then end(). Pieces for a client that is gone are
// dropped. A call that finds no memory throws std::bad_alloc and may be made again.
class Exchange {
  public:
    virtual ~Exchange() = default;
    virtual void reply(HttpReply reply) = 0;
    virtual void begin_stream() = 0;
    virtual void begin_whole(size_t bytes) = 0;  // bytes of JSON in all
    virtual void say(std::string_view piece) = 0;
    virtual void end() = 0;
    virtual size_t unsent() const = 0;  // bytes said that the client has not taken
    virtual bool is_gone() const = 0;   // nobody reads the reply any more
    // Sets the waiter to call until the reply has ended; calls it at once if the client is gone
    // already.
    virtual void set_waiter(std::shared_ptr<Waiter> waiter) = 0;
    // Closes the connection, whatever was sent before: for a reply that cannot be made, and for
    // which there is not even memory to say why.
    virtual void abandon() noexcept = 0;
};

}  // namespace aerie
