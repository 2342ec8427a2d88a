// The sending half of a connection: the reply, and probes that show whether the client still reads.
#include <boost/asio/buffer.hpp>
#include <cmath>

#include "core/clock.h"
#include "serve/sockets/connection.h"
#include "serve/sockets/peer.h"

namespace aerie {

namespace asio = boost::asio;

namespace {

constexpr double kLookSeconds = 0.1;  // between two looks
// Seconds between the first two probes, and the factor by which that grows: the ninth byte comes
// after half an hour.
constexpr double kFirstProbe = 0.5, kProbeGrowth = 3;

}  // namespace

// If a client sends no more, or more than is read ahead, then reading does not show whether it
// still waits for its answer.
void Connection::look_after_client() {
    if (state_ != State::answering || is_reading_) return;
    if (is_broken(uintptr_t(socket_.native_handle()))) return close();
    probe();
    deadline(&Connection::timer_, kLookSeconds, &Connection::look_after_client);
}

// If a client has closed its socket, its system answers any byte by saying that nobody reads it. So
// the bytes that all replies begin with are sent one by one before there is a reply, less and less
// often.
void Connection::probe() {
    const double now = steady_seconds();
    if (is_writing_ || is_replying_ || probed_ == kReplyStart.size() || now < next_probe_) return;
    next_probe_ = now + kFirstProbe * std::pow(kProbeGrowth, double(probed_));
    send_aside(kReplyStart.substr(probed_++, 1));
}

void Connection::send_aside(std::string_view bytes) {
    is_aside_ = true;
    sending_ = bytes;
    sent_ = 0;
    write_some();
}

void Connection::flush() noexcept {
    guard([&] { send_reply(); });
}

void Connection::send_reply() {
    if (is_writing_ || !exchange_) return;
    sending_ = exchange_->take();
    sent_ = 0;
    if (sending_.empty()) {
        if (exchange_->has_ended()) finish_reply();
        return;
    }
    if (!std::exchange(is_replying_, true) && probed_ > 0) {
        sent_ = probed_;
        exchange_->was_sent(probed_);
    }
    write_some();
}

void Connection::write_some() {
    is_writing_ = true;
    deadline(&Connection::write_timer_, kStalledSeconds, &Connection::on_stalled);
    socket_.async_write_some(asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
                             handler(&Connection::on_written));
}

void Connection::on_written(const Code& error, size_t bytes) {
    is_writing_ = false;
    if (state_ == State::closed) return;
    if (error) return close();
    sent_ += bytes;
    if (!is_aside_) exchange_->was_sent(bytes);
    if (sent_ < sending_.size()) return write_some();
    is_aside_ = false;
    no_deadline(&Connection::write_timer_);
    send_reply();
}

void Connection::finish_reply() {
    exchange_->over(false);
    exchange_.reset();
    std::string().swap(sending_);  // it may have been large
    if (!keeps_alive_ || owner_.is_draining()) return linger();
    state_ = State::idle;
    reader_.emplace();
    probed_ = 0;
    next_probe_ = 0;
    keeps_alive_ = is_replying_ = false;
    deadline(&Connection::timer_, kIdleSeconds, &Connection::on_timeout);
    go_on();
    read();
}

// Closing a socket before all was read from it may undo what was sent.
void Connection::linger() {
    if (has_said_all_) return close();
    state_ = State::lingering;
    Code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    deadline(&Connection::timer_, kLingerSeconds, &Connection::on_timeout);
    std::string().swap(unread_);
    read();
}

}  // namespace aerie
