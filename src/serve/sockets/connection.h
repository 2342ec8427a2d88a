// A client's socket: one request after the other, each with its limits.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <string>

#include "serve/sockets/connection_owner.h"
#include "serve/sockets/request_reader.h"
#include "serve/sockets/socket_exchange.h"

namespace aerie {

constexpr int kHeadSeconds = 10, kStalledSeconds = 30, kIdleSeconds = 60, kLingerSeconds = 2;
constexpr int kSpareSeconds = 2;  // the time in which a spare connection must send its request

// All of it is for the thread of the sockets. An exception in a handler, such as std::bad_alloc,
// closes the connection and nothing else.
class Connection : public Sender, public std::enable_shared_from_this<Connection> {
  public:
    // A spare connection is one for which there was no place. It may ask for health, and for
    // anything else once there is a place.
    Connection(boost::asio::io_context& io, boost::asio::ip::tcp::socket socket,
               ConnectionOwner& owner, uint64_t number, bool is_spare)
        : io_(io),
          socket_(std::move(socket)),
          timer_(io),
          write_timer_(io),
          owner_(owner),
          number_(number),
          is_spare_(is_spare) {}

    void start();
    void flush() noexcept override;
    void close() noexcept override;
    void finish_soon() noexcept;                 // no request after this one
    uint64_t number() const { return number_; }  // older connections have smaller numbers
    bool is_spare() const { return is_spare_; }
    // Closes a spare connection that has not asked yet, or was answered, so that another one gets
    // its place: true if so. One that has not asked gets `reply` first.
    bool turn_away(std::string_view reply) noexcept;

  private:
    using Code = boost::system::error_code;
    using Timer = boost::asio::steady_timer Connection::*;
    using Action = void (Connection::*)();
    // Idle: between two requests. Lingering: the reply is sent, and bytes that still come are
    // dropped.
    enum class State { idle, head, body, answering, lingering, closed };

    template <typename Task>
    void guard(const Task& task) noexcept;
    auto handler(void (Connection::*action)(const Code&, size_t));
    void deadline(Timer timer, double seconds, Action then);
    void no_deadline(Timer timer);

    // The request.
    void read();
    void on_read(const Code& error, size_t bytes);
    void go_on();
    void end_of_input();
    void take_request();
    void take_head();
    void take_body();
    void drop_body() noexcept;
    void on_timeout();
    void refuse(const Problem& problem);
    void dispatch();
    void begin_reply();
    void watch();

    // The reply.
    void look_after_client();
    void probe();
    void send_reply();
    void send_aside(std::string_view bytes);
    void write_some();
    void on_written(const Code& error, size_t bytes);
    void on_stalled() { close(); }
    void finish_reply();
    void linger();

    boost::asio::io_context& io_;
    boost::asio::ip::tcp::socket socket_;
    boost::asio::steady_timer timer_;        // limits what the client must do next
    boost::asio::steady_timer write_timer_;  // limits its reading
    ConnectionOwner& owner_;
    const uint64_t number_;
    bool is_spare_;
    State state_ = State::head;
    std::array<char, 16 << 10> piece_;  // the buffer of the read under way
    std::string unread_;                // bytes that came and belong to no request yet
    std::optional<RequestReader> reader_;
    const Endpoint* endpoint_ = nullptr;  // where the request goes, once it has a head
    size_t held_ = 0;                     // bytes of the body that the owner counts
    double body_began_ = 0;
    std::shared_ptr<SocketExchange> exchange_;
    std::string sending_;
    size_t sent_ = 0;        // bytes of `sending_`
    size_t probed_ = 0;      // bytes of the reply's start that were sent before there was a reply
    double next_probe_ = 0;  // steady_seconds() of the next probe
    bool keeps_alive_ = false, is_reading_ = false, is_writing_ = false;
    bool is_aside_ = false;      // the bytes being written are not from the exchange
    bool is_replying_ = false;   // the first bytes of the reply were taken
    bool has_said_all_ = false;  // the client sends nothing after `unread_`
};

template <typename Task>
void Connection::guard(const Task& task) noexcept {
    try {
        task();
    } catch (...) {  // such as std::bad_alloc
        owner_.failed();
        close();
    }
}

inline auto Connection::handler(void (Connection::*action)(const Code&, size_t)) {
    return [self = shared_from_this(), action](const Code& error, size_t bytes) {
        self->guard([&] { ((*self).*action)(error, bytes); });
    };
}

}  // namespace aerie
