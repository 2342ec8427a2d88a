// A client's socket: one request after the other, each with its limits.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <mutex>
#include <optional>

#include "serve/exchange.h"
#include "serve/requests/problem.h"
#include "serve/sockets/http_parser.h"

namespace aerie {

constexpr int kHeadSeconds = 10, kStalledSeconds = 30, kIdleSeconds = 60, kLingerSeconds = 2;

class Connection;

// The reply of one request. What comes late is dropped: the connection may have another by then.
class SocketExchange : public Exchange, public std::enable_shared_from_this<SocketExchange> {
  public:
    SocketExchange(boost::asio::io_context& io, std::weak_ptr<Connection> connection,
                   bool keeps_alive, bool can_chunk, std::string extra_fields)
        : io_(io),
          connection_(std::move(connection)),
          keeps_alive_(keeps_alive),
          can_chunk_(can_chunk),
          extra_fields_(std::move(extra_fields)) {}

    void reply(HttpReply reply) override;
    void begin_stream() override;
    void say(std::string_view piece) override;
    void end() override;
    size_t unsent() const override { return unsent_; }
    void tell(std::shared_ptr<Waiter> waiter) override;

    // For the thread of the sockets.
    std::string take();  // what is to be sent next
    bool has_ended();    // and all of it was taken
    void was_sent(size_t bytes);
    void over(bool is_gone);  // no more will be sent

  private:
    void put(const std::string& bytes, bool is_last);
    std::string head(int status, const std::string& type) const;

    boost::asio::io_context& io_;
    const std::weak_ptr<Connection> connection_;
    const bool keeps_alive_, can_chunk_;
    const std::string extra_fields_;
    std::mutex mutex_;
    std::string outbox_;
    bool is_stream_ = false, has_ended_ = false, is_posted_ = false;
    std::atomic<size_t> unsent_ = 0;
    // Of the thread of the sockets:
    std::shared_ptr<Waiter> waiter_;
    bool is_over_ = false, is_gone_ = false;
};

// What connections need of the server.
class Hall {
  public:
    virtual ~Hall() = default;
    virtual Endpoint admit(const HttpHead& head) = 0;  // throws Problem
    virtual void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) = 0;
    virtual void refused(int status) = 0;
    virtual std::string extra_fields(const HttpHead& head) = 0;  // of the reply
    virtual bool is_draining() const = 0;
    virtual void closed(const std::shared_ptr<Connection>& connection) = 0;
};

// All of it is for the thread of the sockets.
class Connection : public std::enable_shared_from_this<Connection> {
  public:
    Connection(boost::asio::io_context& io, boost::asio::ip::tcp::socket socket, Hall& hall)
        : io_(io), socket_(std::move(socket)), timer_(io), hall_(hall) {}

    void start() { read_head(); }
    void flush();        // there is something to send
    void finish_soon();  // no request after this one
    void close();

  private:
    using Code = boost::system::error_code;
    enum class State { head, body, answering, idle, lingering, closed };

    void read_head();
    void on_head(const Code& error);
    void take_head();
    void read_body();
    void on_body(const Code& error);
    void dispatch();
    void refuse(const Problem& problem, bool keeps_alive);
    bool refuse_bad_http(const Code& error);
    void watch();
    void on_watch(const Code& error, size_t bytes);
    void write_some();
    void on_written(const Code& error, size_t bytes);
    void finish_reply();
    void linger();
    void deadline(int seconds);
    void no_deadline();
    void on_timeout();

    boost::asio::io_context& io_;
    boost::asio::ip::tcp::socket socket_;
    boost::asio::steady_timer timer_;
    Hall& hall_;
    State state_ = State::head;
    boost::beast::flat_buffer buffer_{4 * kMaxHeadBytes};
    std::optional<HttpParser> parser_;
    std::shared_ptr<SocketExchange> exchange_;
    HttpHead head_;
    Endpoint endpoint_ = Endpoint::page;
    std::string sending_;
    size_t sent_ = 0;
    double body_began_ = 0;
    bool keeps_alive_ = false, is_watching_ = false, is_writing_ = false, timed_out_ = false;
};

}  // namespace aerie
