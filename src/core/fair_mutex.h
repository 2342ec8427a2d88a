// A mutex that threads get in the order in which they asked for it, so that a thread that works in
// short turns lets the others have theirs.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace aerie {

class FairMutex {
  public:
    void lock() {
        std::unique_lock guard(mutex_);
        const uint64_t mine = asked_++;
        turn_.wait(guard, [&] { return mine == served_; });
    }
    // Must be called by the thread that holds the mutex: lets all threads that wait have it first.
    void give_way() {
        {
            const std::lock_guard guard(mutex_);
            if (asked_ == served_ + 1) return;
        }
        unlock();
        lock();
    }
    void unlock() {
        {
            const std::lock_guard guard(mutex_);
            ++served_;
        }
        turn_.notify_all();
    }

  private:
    std::mutex mutex_;
    std::condition_variable turn_;
    uint64_t asked_ = 0, served_ = 0;
};

}  // namespace aerie
