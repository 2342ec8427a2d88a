#include "serve/sockets/server.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <set>

#include "core/clock.h"
#include "core/error.h"
#include "core/utf8.h"
#include "serve/endpoints.h"
#include "serve/requests/problem.h"
#include "serve/sockets/connection.h"

namespace aerie {

namespace asio = boost::asio;
using asio::ip::tcp;
using Code = boost::system::error_code;

namespace {

constexpr size_t kMaxConnections = 128;
constexpr size_t kSpareConnections = 16;  // further ones, for clients that ask for health
constexpr int kSystemBuffer = 64 << 10;   // bytes of a client, beside what waits here
constexpr int kLastWordsSeconds = 2;      // to tell clients that their answers are given up
// The server ends once no request came for so many seconds: a client that still asks has not
// noticed yet that it is ending.
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

Problem no_connection() {
    return {503, "too_many_connections", "too many connections; try again"};
}

// The reply to a client for which there is no connection left.
std::string full_reply() {
    const std::string body = no_connection().json();
    return "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
           "Content-Type: application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

class Server::Sockets : public ConnectionOwner {
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

    // An exception outside of a connection, such as missing memory for a new one, ends nothing
    // else: the handlers that it stopped are started again.
    void run(RequestHandler& handler) {
        handler_ = &handler;
        signals_.emplace(io_, SIGINT, SIGTERM);
        for (bool is_over = false; !is_over;) {
            try {
                if (acceptor_.is_open() && !signal_memory_.is_taken()) on_signals();
                if (acceptor_.is_open() && !accept_memory_.is_taken()) accept();
                io_.run();
                is_over = true;
            } catch (...) {
                failed();
            }
        }
        signals_.reset();
        handler_ = nullptr;
    }

    void hand_over(RequestHandler& handler) {
        asio::post(io_, [this, &handler] {
            handler_ = &handler;
            handler.set_connections(int(connections_.size()));
            if (is_draining_) handler.drain();
        });
    }
    void stop() {
        asio::post(io_, [this] {
            if (!acceptor_.is_open()) return;
            if (!is_draining_) drain();
            give_up();
        });
    }
    bool is_ending() const { return is_draining_; }

    const Endpoint& admit(const HttpHead& head) override {
        const Endpoint& endpoint = gate_.admit(head);
        if (endpoint.access != Endpoint::Access::monitor) last_asked_ = steady_seconds();
        return endpoint;
    }
    void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override {
        handler_->handle(std::move(request), std::move(exchange));
    }
    void refused(const Problem& problem) override { handler_->count_refused(problem); }
    void failed() noexcept override { handler_->count_failed_connection(); }
    // CORS fields for pages that are listed by name. No other page is ever allowed to read the
    // reply.
    std::string fields_for(const HttpHead& head) override {
        return page_fields(gate_.page_that_asks(head), head);
    }
    bool is_draining() const override { return is_draining_; }
    bool has_place() const override {
        const auto is_spare = [](const auto& connection) { return connection->is_spare(); };
        const auto spare = std::count_if(connections_.begin(), connections_.end(), is_spare);
        return connections_.size() - size_t(spare) < kMaxConnections;
    }
    size_t hold(ptrdiff_t bytes) noexcept override { return held_ += size_t(bytes); }
    void closed(const std::shared_ptr<Connection>& connection) noexcept override {
        connections_.erase(connection);
        handler_->set_connections(int(connections_.size()));
        try {
            end_if_done();
        } catch (...) {
            failed();
        }
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
        acceptor_.async_accept(
            Reserved(accept_memory_, [this](const Code& error, tcp::socket socket) {
                if (!acceptor_.is_open()) return;
                if (error) return accept_later();
                try {
                    take(std::move(socket));
                } catch (...) {
                    failed();
                }
                accept();
            }));
    }

    // The cause may be too many open files, some of which will be closed soon.
    void accept_later() {
        accept_timer_.expires_after(std::chrono::milliseconds(100));
        accept_timer_.async_wait(Reserved(accept_memory_, [this](const Code& cancelled) {
            if (!cancelled && acceptor_.is_open()) accept();
        }));
    }

    void take(tcp::socket socket) {
        Code ignored;
        socket.set_option(tcp::no_delay(true), ignored);
        socket.set_option(tcp::socket::send_buffer_size(kSystemBuffer), ignored);
        const bool is_spare = !has_place();
        if (is_spare && connections_.size() >= kMaxConnections + kSpareConnections) {
            handler_->count_refused(no_connection());
            if (!turn_one_away()) {
                socket.non_blocking(true, ignored);
                socket.write_some(asio::buffer(full_reply()), ignored);
                return;
            }
        }
        const auto connection =
            std::make_shared<Connection>(io_, std::move(socket), *this, ++taken_, is_spare);
        connections_.insert(connection);
        handler_->set_connections(int(connections_.size()));
        connection->start();
    }

    // Turns away the oldest spare connection that can be closed; false if there is none.
    bool turn_one_away() {
        const std::string reply = full_reply();
        for (const auto& connection : connections_)
            if (connection->is_spare() && std::shared_ptr(connection)->turn_away(reply))
                return true;
        return false;
    }

    void on_signals() {
        signals_->async_wait(Reserved(signal_memory_, [this](const Code& error, int) {
            if (error) return;
            on_signals();  // first: drain() and give_up() may end the waiting
            if (is_draining_) return give_up();
            options_.log("ending: " + std::to_string(connections_.size()) +
                         " connections; a second signal ends them at once");
            drain();
        }));
    }

    // New requests are still read, and get 503: a connection that is refused, or cut before it
    // could say anything, would look like a failure.
    void drain() {
        is_draining_ = true;
        handler_->drain();
        wait(options_.drain_seconds, [this] { give_up(); });
        for_each_connection([](Connection& connection) { connection.finish_soon(); });
        end_if_done();
    }

    void give_up() {
        if (std::exchange(has_given_up_, true)) return;
        wait(kLastWordsSeconds, [this] {
            end();
            for_each_connection([](Connection& connection) { connection.close(); });
        });
        handler_->give_up_all();
        end_if_done();
    }

    // The action may close its connection, which takes it out of the set.
    template <typename Action>
    void for_each_connection(Action action) {
        for (auto next = connections_.begin(); next != connections_.end();) {
            const std::shared_ptr<Connection> connection = *next++;
            action(*connection);
        }
    }

    template <typename Action>
    void wait(int seconds, Action then) {
        drain_timer_.expires_after(std::chrono::seconds(seconds));
        drain_timer_.async_wait(Reserved(drain_memory_, [then](const Code& error) {
            if (!error) then();
        }));
    }

    void end_if_done() {
        if (!is_draining_ || !connections_.empty() || !acceptor_.is_open()) return;
        const double quiet = steady_seconds() - last_asked_;
        if (quiet < kQuietSeconds && !has_given_up_) {
            quiet_timer_.expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(
                std::chrono::duration<double>(kQuietSeconds - quiet)));
            return quiet_timer_.async_wait(Reserved(quiet_memory_, [this](const Code& error) {
                if (!error) end_if_done();
            }));
        }
        accept_backlog();
        if (connections_.empty()) end();
    }

    // Accepts clients in the queue of the system: they are connected already, as far as they know.
    void accept_backlog() {
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

    struct Older {
        bool operator()(const std::shared_ptr<Connection>& a,
                        const std::shared_ptr<Connection>& b) const {
            return a->number() < b->number();
        }
    };

    const ServerOptions options_;
    // Memory for handlers that must go on when memory is short. It stands before the context, which
    // holds the handlers in it.
    HandlerMemory accept_memory_, signal_memory_, drain_memory_, quiet_memory_;
    asio::io_context io_{1};
    tcp::acceptor acceptor_;
    std::optional<asio::signal_set> signals_;  // while it serves
    asio::steady_timer drain_timer_, accept_timer_, quiet_timer_;
    int acceptor_port_ = 0;
    Gate gate_{endpoints()};
    RequestHandler* handler_ = nullptr;
    std::set<std::shared_ptr<Connection>, Older> connections_;
    uint64_t taken_ = 0;                  // connections that were accepted so far
    size_t held_ = 0;                     // bytes of bodies that are still arriving
    double last_asked_ = -kQuietSeconds;  // time of the last request, but for health
    std::atomic<bool> is_draining_ = false;
    bool has_given_up_ = false;
};

Server::Server(ServerOptions options) : sockets_(std::make_unique<Sockets>(std::move(options))) {}
Server::~Server() = default;

int Server::port() const {
    return sockets_->port();
}

void Server::run(RequestHandler& handler) {
    sockets_->run(handler);
}

void Server::hand_over(RequestHandler& handler) {
    sockets_->hand_over(handler);
}

void Server::stop() {
    sockets_->stop();
}

bool Server::is_ending() const {
    return sockets_->is_ending();
}

}  // namespace aerie
