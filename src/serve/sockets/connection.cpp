#include "serve/sockets/connection.h"

#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <chrono>

#include "core/clock.h"

namespace aerie {

namespace http = boost::beast::http;
namespace asio = boost::asio;

namespace {

constexpr int kBodySeconds = 60;  // all of it
constexpr size_t kAhead = 4096;   // bytes that are read at once while an answer is made

}  // namespace

void Connection::deadline(int seconds) {
    timer_.expires_after(std::chrono::seconds(seconds));
    timer_.async_wait([weak = weak_from_this()](const Code& error) {
        const auto self = weak.lock();
        if (!error && self) self->on_timeout();
    });
}

void Connection::no_deadline() {
    timer_.expires_at(std::chrono::steady_clock::time_point::max());
}

void Connection::on_timeout() {
    if (timer_.expiry() > std::chrono::steady_clock::now()) return;  // it was set anew
    if (state_ != State::head && state_ != State::body) return close();
    timed_out_ = true;
    Code ignored;
    socket_.cancel(ignored);
}

void Connection::read_head() {
    state_ = State::head;
    timed_out_ = false;
    parser_.emplace();
    set_limits(*parser_);
    deadline(hall_.is_draining() ? kLingerSeconds : kHeadSeconds);
    http::async_read_header(
        socket_, buffer_, *parser_,
        [self = shared_from_this()](const Code& error, size_t) { self->on_head(error); });
}

// What was read is no request as it should be: true if the client is told so.
bool Connection::refuse_bad_http(const Code& error) {
    if (timed_out_ && parser_->got_some()) {
        refuse({408, "timeout", "the request did not come in time"}, false);
    } else if (error == http::error::header_limit || error == http::error::buffer_overflow) {
        refuse({431, "headers_too_large", "the headers are larger than 16 KB"}, false);
    } else if (error == http::error::body_limit) {
        refuse({413, "request_too_large", "the body is larger than 8 MB"}, false);
    } else if (error != http::error::end_of_stream && error != http::error::partial_message &&
               error.category() == make_error_code(http::error::bad_method).category()) {
        refuse({400, "bad_http", "this is no HTTP/1.1 request"}, false);
    } else {
        return false;
    }
    return true;
}

void Connection::on_head(const Code& error) {
    if (state_ == State::closed) return;
    if (!error)
        take_head();
    else if (!refuse_bad_http(error))
        close();
}

void Connection::take_head() {
    head_ = head_of(*parser_);
    const bool is_whole = parser_->is_done();
    keeps_alive_ = parser_->keep_alive() && !hall_.is_draining();
    try {
        endpoint_ = hall_.admit(head_);
        if (is_whole) return dispatch();
        const auto expected = head_.find("expect");
        if (expected) {
            if (*expected != "100-continue")
                throw bad_request("unknown Expect", "", "invalid_header");
            static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
            asio::async_write(socket_, asio::buffer(kGoOn.data(), kGoOn.size()),
                              [self = shared_from_this()](const Code&, size_t) {});
        }
    } catch (const Problem& problem) {
        return refuse(problem, is_whole && keeps_alive_);
    }
    body_began_ = steady_seconds();
    read_body();
}

void Connection::read_body() {
    state_ = State::body;
    deadline(kHeadSeconds);  // without a byte
    http::async_read_some(
        socket_, buffer_, *parser_,
        [self = shared_from_this()](const Code& error, size_t) { self->on_body(error); });
}

void Connection::on_body(const Code& error) {
    if (state_ == State::closed) return;
    if (error) {
        if (!refuse_bad_http(error)) close();
    } else if (parser_->is_done()) {
        dispatch();
    } else if (steady_seconds() - body_began_ > kBodySeconds) {
        refuse({408, "timeout", "the request did not come in time"}, false);
    } else {
        read_body();
    }
}

void Connection::dispatch() {
    state_ = State::answering;
    no_deadline();
    const bool can_chunk = parser_->get().version() >= 11;
    keeps_alive_ = keeps_alive_ && can_chunk;  // else the end of a stream would not be seen
    exchange_ = std::make_shared<SocketExchange>(io_, weak_from_this(), keeps_alive_, can_chunk,
                                                 hall_.extra_fields(head_));
    watch();
    hall_.handle({endpoint_, head_.target, std::move(parser_->get().body()), steady_seconds()},
                 exchange_);
}

void Connection::refuse(const Problem& problem, bool keeps_alive) {
    state_ = State::answering;
    no_deadline();
    keeps_alive_ = keeps_alive;
    hall_.refused(problem.status);
    exchange_ = std::make_shared<SocketExchange>(io_, weak_from_this(), keeps_alive, true, "");
    HttpReply reply{.status = problem.status, .body = problem.json()};
    if (problem.status == 401) reply.fields.emplace_back("WWW-Authenticate", "Bearer");
    if (problem.status == 405) reply.fields.emplace_back("Allow", method_of(head_.target));
    exchange_->reply(std::move(reply));
    if (keeps_alive) watch();
}

// Reads on while an answer is made: that is how a client is noticed to have gone.
void Connection::watch() {
    if (is_watching_ || buffer_.size() > 2 * kMaxHeadBytes) return;
    is_watching_ = true;
    socket_.async_read_some(buffer_.prepare(kAhead),
                            [self = shared_from_this()](const Code& error, size_t bytes) {
                                self->on_watch(error, bytes);
                            });
}

void Connection::on_watch(const Code& error, size_t bytes) {
    is_watching_ = false;
    if (state_ == State::closed) return;
    // What follows was there already, and need not be waited for.
    if (error == asio::error::operation_aborted && state_ == State::idle) return read_head();
    if (error) return close();
    buffer_.commit(bytes);
    if (state_ == State::idle) return read_head();
    if (state_ == State::lingering) buffer_.consume(buffer_.size());
    watch();
}

void Connection::flush() {
    if (is_writing_ || !exchange_ || state_ == State::closed) return;
    sending_ = exchange_->take();
    sent_ = 0;
    if (!sending_.empty())
        write_some();
    else if (exchange_->has_ended())
        finish_reply();
}

void Connection::write_some() {
    is_writing_ = true;
    deadline(kStalledSeconds);
    socket_.async_write_some(asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
                             [self = shared_from_this()](const Code& error, size_t bytes) {
                                 self->on_written(error, bytes);
                             });
}

void Connection::on_written(const Code& error, size_t bytes) {
    is_writing_ = false;
    if (state_ == State::closed) return;
    if (error) return close();
    sent_ += bytes;
    exchange_->was_sent(bytes);
    if (sent_ < sending_.size()) return write_some();
    no_deadline();
    flush();
}

void Connection::finish_reply() {
    exchange_->over(false);
    exchange_.reset();
    sending_.clear();
    if (!keeps_alive_ || hall_.is_draining()) return linger();
    state_ = State::idle;
    if (!is_watching_) return read_head();
    deadline(kIdleSeconds);
    Code ignored;
    if (buffer_.size() > 0) socket_.cancel(ignored);
}

// A socket that is closed before all was read from it may take back what was sent.
void Connection::linger() {
    state_ = State::lingering;
    Code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    deadline(kLingerSeconds);
    buffer_.consume(buffer_.size());
    watch();
}

void Connection::finish_soon() {
    keeps_alive_ = false;
    if (state_ == State::idle) close();
    if (state_ == State::head) deadline(kLingerSeconds);  // its request may be on the way
}

void Connection::close() {
    if (state_ == State::closed) return;
    state_ = State::closed;
    no_deadline();
    Code ignored;
    socket_.close(ignored);
    if (exchange_) exchange_->over(true);
    exchange_.reset();
    hall_.closed(shared_from_this());
}

}  // namespace aerie
