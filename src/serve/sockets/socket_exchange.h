// The reply to one request: turns what any thread says into the bytes that are sent.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <mutex>

#include "serve/exchange.h"
#include "serve/sockets/handler_memory.h"

namespace aerie {

// The bytes that every reply begins with.
constexpr std::string_view kReplyStart = "HTTP/1.1 ";

// The way in which a reply is written.
struct ReplyForm {
    bool keeps_alive = false;
    bool can_chunk = true;    // else a stream ends with the connection
    bool has_body = true;     // HEAD has none
    std::string fields = {};  // further header fields, each with its line end
};

// Sends the bytes of an exchange. For the thread of the sockets.
class Sender {
  public:
    virtual ~Sender() = default;
    virtual void flush() noexcept = 0;  // there is something to send
    virtual void close() noexcept = 0;
};

// Pieces that come late are dropped: the connection may have another reply by then.
class SocketExchange : public Exchange, public std::enable_shared_from_this<SocketExchange> {
  public:
    SocketExchange(boost::asio::io_context& io, std::weak_ptr<Sender> sender, ReplyForm form)
        : io_(io), sender_(std::move(sender)), form_(std::move(form)) {}

    void reply(HttpReply reply) override;
    void begin_stream() override;
    void begin_whole(size_t bytes) override;
    void say(std::string_view piece) override;
    void end() override;
    size_t unsent() const override { return unsent_; }
    bool is_gone() const override { return is_gone_; }
    void set_waiter(std::shared_ptr<Waiter> waiter) override;
    void abandon() noexcept override;

    // For the thread of the sockets.
    std::string take();  // the next bytes to send
    bool has_ended();    // and all bytes were taken
    void was_sent(size_t bytes);
    void over(bool is_gone);  // no more will be sent

  private:
    void put(std::string_view head, std::string_view body, bool is_last);
    void post_flush();
    std::string head(int status, const std::string& type) const;

    boost::asio::io_context& io_;
    const std::weak_ptr<Sender> sender_;
    const ReplyForm form_;
    HandlerMemory flush_memory_;
    mutable std::mutex mutex_;
    std::string outbox_;
    std::shared_ptr<Waiter> waiter_;
    bool is_stream_ = false, has_ended_ = false, is_posted_ = false, is_over_ = false;
    std::atomic<bool> is_gone_ = false, is_abandoned_ = false;
    std::atomic<size_t> unsent_ = 0;
};

}  // namespace aerie
