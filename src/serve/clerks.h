// Threads for what takes longer than the thread of the sockets may wait, and less than an answer:
// reading requests, cutting texts into tokens.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace aerie {

class Clerks {
  public:
    explicit Clerks(int count) {
        for (int i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
    }
    ~Clerks() {  // all that was given to them is done
        {
            const std::lock_guard lock(mutex_);
            is_over_ = true;
        }
        changed_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }
    Clerks(const Clerks&) = delete;
    Clerks& operator=(const Clerks&) = delete;

    void give(std::function<void()> work) {
        {
            const std::lock_guard lock(mutex_);
            work_.push_back(std::move(work));
        }
        changed_.notify_one();
    }

  private:
    void work() {
        std::unique_lock lock(mutex_);
        while (true) {
            changed_.wait(lock, [&] { return is_over_ || !work_.empty(); });
            if (work_.empty()) return;
            const std::function<void()> next = std::move(work_.front());
            work_.pop_front();
            lock.unlock();
            next();
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> work_;
    bool is_over_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace aerie
