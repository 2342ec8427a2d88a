// HTTP/1.1 for a service: one thread for all sockets. Boost stays in this folder's .cpp files.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/service.h"

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
    // Binds. Throws UsageError for a host that is no address, or one that others can reach
    // without a key; Error if the address is taken.
    explicit Server(ServerOptions options);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    int port() const;
    // Serves until SIGTERM or SIGINT, then until the requests that came have ended and nobody asks
    // any more, or drain_seconds; at the second signal they are given up. Meanwhile new requests
    // get 503, as does who asks for health. The server must outlive the service.
    void run(Service& service);

  private:
    class Sockets;
    std::unique_ptr<Sockets> sockets_;
};

}  // namespace aerie
