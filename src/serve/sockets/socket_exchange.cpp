// From what is said to what is sent.
#include <boost/asio/post.hpp>
#include <boost/beast/http/status.hpp>
#include <cstdio>
#include <utility>

#include "serve/sockets/connection.h"

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
    std::string text = "HTTP/1.1 " + std::to_string(status) + " " +
                       std::string(reason.data(), reason.size()) + "\r\n";
    if (!type.empty()) text += "Content-Type: " + type + "\r\n";
    text += "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n" + extra_fields_;
    text += keeps_alive_ ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
    return text;
}

void SocketExchange::reply(HttpReply reply) {
    const bool has_body = reply.status != 204;
    std::string text = head(reply.status, has_body ? reply.type : "");
    for (const auto& [name, value] : reply.fields) text += name + ": " + value + "\r\n";
    if (has_body) text += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
    put(text + "\r\n" + (has_body ? reply.body : ""), true);
}

void SocketExchange::begin_stream() {
    is_stream_ = true;
    put(head(200, "text/event-stream; charset=utf-8") +
            (can_chunk_ ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n"),
        false);
}

void SocketExchange::say(std::string_view piece) {
    if (!piece.empty()) put(can_chunk_ ? chunk(piece) : std::string(piece), false);
}

void SocketExchange::end() {
    put(is_stream_ && can_chunk_ ? "0\r\n\r\n" : "", true);
}

void SocketExchange::put(const std::string& bytes, bool is_last) {
    {
        const std::lock_guard lock(mutex_);
        if (has_ended_) return;
        outbox_ += bytes;
        unsent_ += bytes.size();
        has_ended_ = is_last;
        if (std::exchange(is_posted_, true)) return;
    }
    boost::asio::post(io_, [self = shared_from_this()] {
        {
            const std::lock_guard lock(self->mutex_);
            self->is_posted_ = false;
        }
        if (self->is_over_) return;
        if (const auto connection = self->connection_.lock()) connection->flush();
    });
}

void SocketExchange::tell(std::shared_ptr<Waiter> waiter) {
    boost::asio::post(io_, [self = shared_from_this(), waiter = std::move(waiter)] {
        if (self->is_gone_)
            waiter->gone();
        else if (!self->is_over_)
            self->waiter_ = waiter;
    });
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
    unsent_ -= bytes;
    if (waiter_ && unsent_ <= kLittleUnsent) waiter_->has_room();
}

void SocketExchange::over(bool is_gone) {
    is_over_ = true;
    is_gone_ = is_gone;
    const auto waiter = std::exchange(waiter_, nullptr);
    if (is_gone && waiter) waiter->gone();
    const std::lock_guard lock(mutex_);
    has_ended_ = true;  // what is said from now on is dropped
    outbox_.clear();
    unsent_ = 0;
}

}  // namespace aerie
