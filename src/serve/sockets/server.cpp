#include "serve/sockets/server.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <set>

#include "core/clock.h"
#include "core/error.h"
#include "core/utf8.h"
#include "serve/requests/problem.h"
#include "serve/sockets/connection.h"

namespace aerie {

namespace asio = boost::asio;
using asio::ip::tcp;
using Code = boost::system::error_code;

namespace {

constexpr size_t kMaxConnections = 128;
constexpr int kSystemBuffer = 64 << 10;  // of a client, beside what waits here
constexpr int kLastWordsSeconds = 2;     // for what is said to clients of answers that are given up
// Who still asks while the server ends has not noticed yet. It ends when nobody did for so long.
constexpr double kQuietSeconds = 1;

tcp::endpoint endpoint_of(const ServerOptions& options) {
    Code error;
    const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
    const auto address = asio::ip::make_address(host, error);
    if (error)
        throw UsageError(in_quotes(options.host) + ": expected an address such as 127.0.0.1");
    if (!address.is_loopback() && options.api_key.empty())
        throw UsageError(options.host +
                         " can be reached from other machines: that needs --api-key or "
                         "AERIE_API_KEY");
    return {address, (unsigned short)options.port};
}

// To who finds all connections taken.
std::string full_reply() {
    const std::string body =
        Problem(503, "too_many_connections", "too many connections; try again").json();
    return "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
           "Content-Type: application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

class Server::Sockets : public Hall {
  public:
    explicit Sockets(ServerOptions options)
        : options_(std::move(options)),
          acceptor_(io_),
          drain_timer_(io_),
          accept_timer_(io_),
          quiet_timer_(io_) {
        const tcp::endpoint endpoint = endpoint_of(options_);
        listen(endpoint);
        gate_.api_key = options_.api_key;
        gate_.hosts = options_.hosts;
        gate_.origins = options_.origins;
        if (!endpoint.address().is_unspecified())
            gate_.add_address(endpoint.address().to_string(), port());
        for (const char* name : {"127.0.0.1", "localhost", "::1"}) gate_.add_address(name, port());
    }

    int port() const { return acceptor_port_; }

    void run(Service& service) {
        service_ = &service;
        signals_.emplace(io_, SIGINT, SIGTERM);
        on_signals();
        accept();
        io_.run();
        signals_.reset();
        service_ = nullptr;
    }

    Endpoint admit(const HttpHead& head) override {
        const Endpoint endpoint = gate_.admit(head);
        if (endpoint != Endpoint::health) last_asked_ = steady_seconds();
        return endpoint;
    }
    void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override {
        service_->handle(std::move(request), std::move(exchange));
    }
    void refused(int status) override { service_->count_refused(status); }
    // Of pages that are listed by name; no other is ever told that it may read the reply.
    std::string extra_fields(const HttpHead& head) override {
        const auto origin = head.find("origin");
        if (!origin) return "";
        return "Access-Control-Allow-Origin: " + std::string(*origin) +
               "\r\nVary: Origin\r\nAccess-Control-Allow-Methods: GET, POST\r\n"
               "Access-Control-Allow-Headers: Authorization, Content-Type\r\n";
    }
    bool is_draining() const override { return is_draining_; }
    void closed(const std::shared_ptr<Connection>& connection) override {
        connections_.erase(connection);
        service_->set_connections(int(connections_.size()));
        end_if_done();
    }

  private:
    void listen(const tcp::endpoint& endpoint) {
        const auto check = [&](const Code& error) {
            if (error)
                throw Error(options_.host + ":" + std::to_string(options_.port) + ": " +
                            error.message());
        };
        Code error;
        acceptor_.open(endpoint.protocol(), error);
        check(error);
        acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
        acceptor_.bind(endpoint, error);
        check(error);
        acceptor_.listen(asio::socket_base::max_listen_connections, error);
        check(error);
        acceptor_port_ = acceptor_.local_endpoint(error).port();
        check(error);
    }

    void accept() {
        acceptor_.async_accept([this](const Code& error, tcp::socket socket) {
            if (!acceptor_.is_open()) return;
            if (!error) {
                take(std::move(socket));
                return accept();
            }
            // Such as too many open files: they will be closed.
            accept_timer_.expires_after(std::chrono::milliseconds(100));
            accept_timer_.async_wait([this](const Code& cancelled) {
                if (!cancelled) accept();
            });
        });
    }

    void take(tcp::socket socket) {
        Code ignored;
        socket.set_option(tcp::no_delay(true), ignored);
        socket.set_option(tcp::socket::send_buffer_size(kSystemBuffer), ignored);
        if (connections_.size() >= kMaxConnections) {
            service_->count_refused(503);
            socket.non_blocking(true, ignored);
            socket.write_some(asio::buffer(full_reply()), ignored);
            return;
        }
        const auto connection = std::make_shared<Connection>(io_, std::move(socket), *this);
        connections_.insert(connection);
        service_->set_connections(int(connections_.size()));
        connection->start();
    }

    void on_signals() {
        signals_->async_wait([this](const Code& error, int) {
            if (error) return;
            on_signals();  // first: what follows may end the waiting
            if (!is_draining_)
                drain();
            else
                give_up();
        });
    }

    // New requests are still heard, and told to go elsewhere: a connection that is refused, or cut
    // before it could say anything, would look like a failure.
    void drain() {
        is_draining_ = true;
        service_->drain();
        options_.log("ending: " + std::to_string(connections_.size()) +
                     " connections; a second signal ends them at once");
        for (const auto& connection : std::set(connections_)) connection->finish_soon();
        wait(options_.drain_seconds, [this] { give_up(); });
        end_if_done();
    }

    void give_up() {
        if (std::exchange(has_given_up_, true)) return;
        service_->give_up_all();
        wait(kLastWordsSeconds, [this] {
            end();
            for (const auto& connection : std::set(connections_)) connection->close();
        });
        end_if_done();
    }

    void wait(int seconds, std::function<void()> then) {
        drain_timer_.expires_after(std::chrono::seconds(seconds));
        drain_timer_.async_wait([then = std::move(then)](const Code& error) {
            if (!error) then();
        });
    }

    void end_if_done() {
        if (!is_draining_ || !connections_.empty() || !acceptor_.is_open()) return;
        const double quiet = steady_seconds() - last_asked_;
        if (quiet < kQuietSeconds && !has_given_up_) {
            quiet_timer_.expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(
                std::chrono::duration<double>(kQuietSeconds - quiet)));
            return quiet_timer_.async_wait([this](const Code& error) {
                if (!error) end_if_done();
            });
        }
        take_those_at_the_door();
        if (connections_.empty()) end();
    }

    // They are connected already, as far as they know.
    void take_those_at_the_door() {
        Code error;
        acceptor_.non_blocking(true, error);
        while (!error) {
            tcp::socket socket(io_);
            acceptor_.accept(socket, error);
            if (!error) take(std::move(socket));
        }
    }

    void end() {
        Code ignored;
        acceptor_.close(ignored);
        for (asio::steady_timer* timer : {&accept_timer_, &drain_timer_, &quiet_timer_})
            timer->cancel();
        signals_->cancel();
    }

    const ServerOptions options_;
    asio::io_context io_{1};
    tcp::acceptor acceptor_;
    std::optional<asio::signal_set> signals_;  // while it serves
    asio::steady_timer drain_timer_, accept_timer_, quiet_timer_;
    int acceptor_port_ = 0;
    Gate gate_;
    Service* service_ = nullptr;
    std::set<std::shared_ptr<Connection>> connections_;
    double last_asked_ = -kQuietSeconds;  // when, but for health
    bool is_draining_ = false, has_given_up_ = false;
};

Server::Server(ServerOptions options) : sockets_(std::make_unique<Sockets>(std::move(options))) {}
Server::~Server() = default;

int Server::port() const {
    return sockets_->port();
}

void Server::run(Service& service) {
    sockets_->run(service);
}

}  // namespace aerie
