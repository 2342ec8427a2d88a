#include "serve/sockets/connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <chrono>

#include "core/clock.h"

namespace aerie {

namespace asio = boost::asio;

namespace {

constexpr int kBodySeconds = 60;          // for the whole body
constexpr size_t kMaxAhead = 32 << 10;    // bytes of later requests, read while one is answered
constexpr size_t kMaxBodies = 256 << 20;  // bytes of all clients' bodies that are still arriving
constexpr size_t kSmallBody = 64 << 10;   // bytes; a body this small is taken even then

Problem timeout() {
    return {408, "timeout", "the request did not come in time"};
}

Problem incomplete() {
    return bad_request(
        "the body is incomplete: the sending side of the connection was closed in the middle of it",
        "", "incomplete_body");
}

Problem no_place() {
    return {503, "too_many_connections", "too many connections; try again"};
}

}  // namespace

void Connection::deadline(Timer timer, double seconds, Action then) {
    (this->*timer)
        .expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(
            std::chrono::duration<double>(seconds)));
    (this->*timer).async_wait([weak = weak_from_this(), timer, then](const Code& error) {
        const auto self = weak.lock();
        if (error || !self || self->state_ == State::closed) return;
        if (((*self).*timer).expiry() > std::chrono::steady_clock::now())
            return;  // the deadline was moved
        self->guard([&] { ((*self).*then)(); });
    });
}

void Connection::no_deadline(Timer timer) {
    (this->*timer).expires_at(std::chrono::steady_clock::time_point::max());
}

void Connection::start() {
    guard([&] {
        reader_.emplace();
        deadline(&Connection::timer_,
                 owner_.is_draining() ? kLingerSeconds
                 : is_spare_          ? kSpareSeconds
                                      : kHeadSeconds,
                 &Connection::on_timeout);
        read();
    });
}

// Reads while an answer is made, too: this shows that a client has gone.
void Connection::read() {
    if (is_reading_ || has_said_all_ || state_ == State::closed) return;
    if (state_ == State::answering && unread_.size() > kMaxAhead) return look_after_client();
    is_reading_ = true;
    socket_.async_read_some(asio::buffer(piece_), handler(&Connection::on_read));
}

void Connection::on_read(const Code& error, size_t bytes) {
    is_reading_ = false;
    if (state_ == State::closed) return;
    if (error && error != asio::error::eof) return close();
    has_said_all_ = bool(error);
    if (state_ == State::answering) {
        unread_.append(piece_.data(), bytes);
        if (has_said_all_) return look_after_client();
    } else if (has_said_all_) {
        return end_of_input();
    } else if (state_ != State::lingering) {
        unread_.append(piece_.data(), bytes);
        go_on();
    }
    read();
}

// Continues with the bytes that have come.
void Connection::go_on() {
    try {
        take_request();
    } catch (const Problem& problem) {
        return refuse(problem);
    }
    if (has_said_all_ && state_ != State::answering) end_of_input();
}

// The rest of the request will not come. A client that has closed its sending side alone can still
// read why it gets no answer.
void Connection::end_of_input() {
    if (state_ != State::body) return close();
    refuse(incomplete());
}

void Connection::take_request() {
    if (!reader_->has_head()) {
        unread_.erase(0, reader_->take(unread_));
        if (state_ == State::idle && reader_->has_begun()) {
            state_ = State::head;
            deadline(&Connection::timer_, kHeadSeconds, &Connection::on_timeout);
        }
        if (!reader_->has_head()) return;
        take_head();
    }
    if (!reader_->is_whole()) take_body();
    if (reader_->is_whole()) dispatch();
}

void Connection::take_head() {
    const HttpHead& head = reader_->head();
    check_framing(head);  // first: a request that is refused for this is the last one here
    if (is_spare_ && owner_.has_place()) is_spare_ = false;
    keeps_alive_ = reader_->keeps_alive() && !is_spare_ && !owner_.is_draining();
    endpoint_ = &owner_.admit(head);
    if (is_spare_ && endpoint_->access != Endpoint::Access::monitor) throw no_place();
    if (reader_->is_whole()) return;
    if (expects_continue(head)) send_aside("HTTP/1.1 100 Continue\r\n\r\n");
    state_ = State::body;
    body_began_ = steady_seconds();
}

void Connection::take_body() {
    deadline(&Connection::timer_, kHeadSeconds, &Connection::on_timeout);  // without a byte
    if (!unread_.empty()) unread_.erase(0, reader_->take(unread_));
    if (reader_->is_whole()) return;
    if (steady_seconds() - body_began_ > kBodySeconds) throw timeout();
    const size_t size = reader_->body().size();
    const size_t all = owner_.hold(ptrdiff_t(size) - ptrdiff_t(held_));
    held_ = size;
    if (all > kMaxBodies && size > kSmallBody)
        throw Problem(503, "too_many_bytes", "too much is being sent at once; try again");
}

void Connection::drop_body() noexcept {
    owner_.hold(-ptrdiff_t(held_));
    held_ = 0;
    if (reader_) std::string().swap(reader_->body());
}

void Connection::on_timeout() {
    if (state_ == State::head && is_spare_) return refuse(no_place());
    if (state_ == State::body || (state_ == State::head && reader_->has_begun()))
        return refuse(timeout());
    close();
}

void Connection::refuse(const Problem& problem) {
    owner_.refused(problem);
    keeps_alive_ = keeps_alive_ && reader_->is_whole();
    drop_body();
    begin_reply();
    HttpReply reply{.status = problem.status, .body = problem.json()};
    if (problem.status == 401) reply.fields.emplace_back("WWW-Authenticate", "Bearer");
    if (problem.status == 503) reply.fields.emplace_back("Retry-After", "1");
    if (problem.status == 405) reply.fields.emplace_back("Allow", problem.allow);
    exchange_->reply(std::move(reply));
    watch();
}

void Connection::dispatch() {
    // A stream of HTTP/1.0 ends with its connection.
    keeps_alive_ = keeps_alive_ && reader_->head().is_http_1_1;
    std::string key(key_of(reader_->head()));  // may throw: before anything is given away
    std::string body = std::move(reader_->body());
    drop_body();
    begin_reply();
    owner_.handle(
        {endpoint_, reader_->head().target, std::move(body), steady_seconds(), std::move(key)},
        exchange_);
    watch();
}

// Watches the client while an answer is made. If the client has gone, this closes the connection.
void Connection::watch() {
    if (has_said_all_)
        look_after_client();
    else
        read();
}

void Connection::begin_reply() {
    state_ = State::answering;
    no_deadline(&Connection::timer_);
    const bool has_head = reader_->has_head();
    exchange_ = std::make_shared<SocketExchange>(
        io_, weak_from_this(),
        ReplyForm{.keeps_alive = keeps_alive_,
                  .can_chunk = has_head && reader_->head().is_http_1_1,
                  .has_body = !reader_->is_head_request(),
                  .fields = has_head ? owner_.fields_for(reader_->head()) : ""});
}

void Connection::finish_soon() noexcept {
    keeps_alive_ = false;
    if (state_ == State::idle) close();
    if (state_ != State::head) return;  // its first request may be on the way
    guard([&] { deadline(&Connection::timer_, kLingerSeconds, &Connection::on_timeout); });
}

bool Connection::turn_away(std::string_view reply) noexcept {
    if (!is_spare_ || state_ == State::answering) return false;
    Code ignored;
    socket_.non_blocking(true, ignored);
    if (state_ == State::head)
        socket_.write_some(asio::buffer(reply.data(), reply.size()), ignored);
    close();
    return true;
}

void Connection::close() noexcept {
    if (state_ == State::closed) return;
    state_ = State::closed;
    no_deadline(&Connection::timer_);
    no_deadline(&Connection::write_timer_);
    Code ignored;
    socket_.close(ignored);
    drop_body();
    try {
        if (exchange_) exchange_->over(true);
    } catch (...) {  // from the waiter's gone()
        owner_.failed();
    }
    exchange_.reset();
    owner_.closed(shared_from_this());
}

}  // namespace aerie
