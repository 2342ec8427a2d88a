// HTTP/1.1 for a service, with one thread for all sockets. Boost is used in this folder only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "serve/request_handler.h"

namespace aerie {

struct ServerOptions {
    std::string host = "127.0.0.1";
    int port = 8080;  // 0: any that is free
    std::string api_key;
    std::vector<std::string> hosts, origins;  // further values of Host and Origin
    int drain_seconds = 30;
    std::function<void(const std::string&)> log;
};

class Server {
  public:
    // Binds to the address. Throws UsageError if `host` is no address, or if other machines can
    // reach it and there is no key; Error if the address is taken.
    explicit Server(ServerOptions options);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    int port() const;
    // Serves until SIGTERM or SIGINT, then until all requests that came have ended and nobody asks
    // any more, or for drain_seconds; at a second signal the requests are given up. Meanwhile new
    // requests get 503, and so does /health. The server must outlive the handler.
    void run(RequestHandler& handler);

    // From another thread while run() serves: requests go to this handler from now on; those that
    // the earlier one has must have been replied to at once.
    void hand_over(RequestHandler& handler);
    // From another thread: run() returns as soon as it can.
    void stop();
    // Whether a signal or stop() is ending run().
    bool is_ending() const;

  private:
    class Sockets;
    std::unique_ptr<Sockets> sockets_;
};

}  // namespace aerie
