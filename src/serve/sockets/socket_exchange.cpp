#include "serve/sockets/socket_exchange.h"

#include <boost/asio/post.hpp>
#include <boost/beast/http/status.hpp>
#include <cstdio>
#include <utility>

namespace aerie {

namespace {

std::string chunk(std::string_view bytes) {
    char size[24];
    std::snprintf(size, sizeof(size), "%zx\r\n", bytes.size());
    return size + std::string(bytes) + "\r\n";
}

}  // namespace

std::string SocketExchange::head(int status, const std::string& type) const {
    const auto reason = boost::beast::http::obsolete_reason(boost::beast::http::status(status));
    std::string text = std::string(kReplyStart) + std::to_string(status) + " " +
                       std::string(reason.data(), reason.size()) + "\r\n";
    if (!type.empty()) text += "Content-Type: " + type + "\r\n";
    text += "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n" + form_.fields;
    text += form_.keeps_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
    return text;
}

void SocketExchange::reply(HttpReply reply) {
    const bool has_content = reply.status != 204;
    std::string text = head(reply.status, has_content ? reply.type : "");
    for (const auto& [name, value] : reply.fields) text += name + ": " + value + "\r\n";
    if (has_content) text += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
    text += "\r\n";
    put(text, has_content && form_.has_body ? std::string_view(reply.body) : "", true);
}

void SocketExchange::begin_stream() {
    is_stream_ = true;
    put(head(200, "text/event-stream; charset=utf-8") +
            (form_.can_chunk ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n"),
        "", false);
}

void SocketExchange::begin_whole(size_t bytes) {
    put(head(200, "application/json") + "Content-Length: " + std::to_string(bytes) + "\r\n\r\n", "",
        false);
}

void SocketExchange::say(std::string_view piece) {
    if (piece.empty()) return;
    put(is_stream_ && form_.can_chunk ? chunk(piece) : std::string(piece), "", false);
}

void SocketExchange::end() {
    put(is_stream_ && form_.can_chunk ? "0\r\n\r\n" : "", "", true);
}

void SocketExchange::put(std::string_view head, std::string_view body, bool is_last) {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
    const size_t size = outbox_.size() + head.size() + body.size();
    if (!body.empty()) outbox_.reserve(size);
    outbox_.append(head).append(body);
    unsent_ += head.size() + body.size();
    has_ended_ = is_last;
    post_flush();
}

// Called under the mutex. Allocates nothing, so that bytes which were put are sent.
void SocketExchange::post_flush() {
    if (std::exchange(is_posted_, true)) return;
    boost::asio::post(io_, Reserved(flush_memory_, [self = shared_from_this()] {
                          {
                              const std::lock_guard lock(self->mutex_);
                              self->is_posted_ = false;
                              if (self->is_over_) return;
                          }
                          const auto sender = self->sender_.lock();
                          if (!sender) return;
                          if (self->is_abandoned_)
                              sender->close();
                          else
                              sender->flush();
                      }));
}

void SocketExchange::abandon() noexcept {
    is_abandoned_ = true;
    const std::lock_guard lock(mutex_);
    post_flush();
}

void SocketExchange::set_waiter(std::shared_ptr<Waiter> waiter) {
    {
        const std::lock_guard lock(mutex_);
        if (!is_over_) {
            waiter_ = std::move(waiter);
            return;
        }
    }
    if (is_gone_) waiter->gone();
}

std::string SocketExchange::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(outbox_, {});
}

bool SocketExchange::has_ended() {
    const std::lock_guard lock(mutex_);
    return has_ended_ && outbox_.empty();
}

void SocketExchange::was_sent(size_t bytes) {
    std::shared_ptr<Waiter> waiter;
    {
        const std::lock_guard lock(mutex_);
        waiter = waiter_;
    }
    unsent_ -= bytes;
    if (waiter && unsent_ <= kLittleUnsent) waiter->has_room();
}

void SocketExchange::over(bool is_gone) {
    std::shared_ptr<Waiter> waiter;
    {
        const std::lock_guard lock(mutex_);
        is_over_ = true;
        is_gone_ = is_gone;
        has_ended_ = true;  // later pieces are dropped
        std::string().swap(outbox_);
        waiter = std::exchange(waiter_, nullptr);
        unsent_ = 0;
    }
    if (is_gone && waiter) waiter->gone();
}

}  // namespace aerie
