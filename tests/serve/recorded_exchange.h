// A client of the service without sockets: it records what it hears, and can be slow or go away.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "serve/exchange.h"

namespace aerie::test {

class RecordedExchange : public Exchange {
  public:
    // If `reads` is false, the client reads nothing until read_all().
    explicit RecordedExchange(bool reads = true) : reads_(reads) {}

    void reply(HttpReply reply) override {
        refuse_some();
        const std::lock_guard lock(mutex_);
        add(reply.body);
        status_ = reply.status;
        ends_ += 1;
    }
    void begin_stream() override {
        refuse_some();
        status_ = 200;
    }
    void begin_whole(size_t bytes) override {
        refuse_some();
        status_ = 200;
        promised = bytes;
    }
    void say(std::string_view piece) override {
        refuse_some();
        const std::lock_guard lock(mutex_);
        add(piece);
    }
    void end() override {
        refuse_some();
        const std::lock_guard lock(mutex_);
        ends_ += 1;
        changed_.notify_all();
    }
    size_t unsent() const override {
        const std::lock_guard lock(mutex_);
        return unsent_;
    }
    bool is_gone() const override { return is_gone_; }
    void set_waiter(std::shared_ptr<Waiter> waiter) override {
        if (is_gone_) return waiter->gone();
        const std::lock_guard lock(mutex_);
        waiter_ = std::move(waiter);
    }
    void abandon() noexcept override {
        const std::lock_guard lock(mutex_);
        is_abandoned_ = true;
        changed_.notify_all();
    }

    // Reads everything that is there, and everything that comes later.
    void read_all() {
        std::shared_ptr<Waiter> waiter;
        {
            const std::lock_guard lock(mutex_);
            reads_ = true;
            unsent_ = 0;
            waiter = waiter_;
        }
        if (waiter) waiter->has_room();
    }
    // Reads everything that is there, and then stops again.
    void read_some() {
        std::shared_ptr<Waiter> waiter;
        {
            const std::lock_guard lock(mutex_);
            unsent_ = 0;
            waiter = waiter_;
        }
        if (waiter) waiter->has_room();
    }
    void go() {
        is_gone_ = true;
        std::shared_ptr<Waiter> waiter;
        {
            const std::lock_guard lock(mutex_);
            waiter = std::move(waiter_);
        }
        if (waiter) waiter->gone();
    }
    // The next `calls` calls find no memory.
    void refuse(int calls) { refusals_ = calls; }

    bool has_ended() const {
        const std::lock_guard lock(mutex_);
        return ends_ > 0 || is_abandoned_;
    }
    // Waits until the reply has ended; false after a minute.
    bool wait() const {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::minutes(1),
                                 [&] { return ends_ > 0 || is_abandoned_; });
    }
    int status() const { return status_; }
    int ends() const {
        const std::lock_guard lock(mutex_);
        return ends_;
    }
    bool is_abandoned() const { return is_abandoned_; }
    std::string text() const {
        const std::lock_guard lock(mutex_);
        return text_;
    }
    size_t promised = 0;

  private:
    void refuse_some() {
        if (refusals_ > 0 && refusals_-- > 0) throw std::bad_alloc();
    }
    void add(std::string_view bytes) {
        text_ += bytes;
        if (!reads_) unsent_ += bytes.size();
        changed_.notify_all();
    }

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::shared_ptr<Waiter> waiter_;
    std::string text_;
    bool reads_;
    size_t unsent_ = 0;
    int ends_ = 0;
    std::atomic<int> status_ = 0, refusals_ = 0;
    std::atomic<bool> is_gone_ = false, is_abandoned_ = false;
};

}  // namespace aerie::test
