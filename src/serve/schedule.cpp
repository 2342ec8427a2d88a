#include "serve/schedule.h"

#include <algorithm>
#include <utility>

namespace aerie {

Schedule::Schedule(const ScheduleLimits& limits) : limits_(limits) {
    for (int i = 0; i < limits.running; ++i) threads_.emplace_back([this] { work(); });
}

Schedule::~Schedule() {
    give_up_all();
    {
        const std::lock_guard lock(mutex_);
        is_over_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

bool Schedule::add(std::shared_ptr<Job> job) {
    {
        const std::lock_guard lock(mutex_);
        // Those that a thread is about to take do not wait.
        const int free = std::max(0, limits_.running - int(begun_.size() - waiting_.size()));
        if (int(new_.size()) >= limits_.waiting + free) return false;
        new_.push_back(std::move(job));
    }
    changed_.notify_one();
    return true;
}

void Schedule::resume(const std::shared_ptr<Job>& job) {
    {
        const std::lock_guard lock(mutex_);
        if (waiting_.erase(job))
            ready_.push_back(job);
        else
            job->is_resumed_ = true;
    }
    changed_.notify_one();
}

bool Schedule::remove(const std::shared_ptr<Job>& job) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(new_.begin(), new_.end(), job);
    if (found == new_.end()) return false;
    new_.erase(found);
    return true;
}

void Schedule::give_up_all() {
    std::vector<std::shared_ptr<Job>> all;
    {
        const std::lock_guard lock(mutex_);
        all.assign(new_.begin(), new_.end());
        all.insert(all.end(), begun_.begin(), begun_.end());
        ready_.insert(ready_.end(), waiting_.begin(), waiting_.end());
        waiting_.clear();
    }
    changed_.notify_all();
    for (const auto& job : all) job->give_up();
}

// Those that have begun come first. Called under the mutex; null: there is nothing to do now.
std::shared_ptr<Job> Schedule::next() {
    std::shared_ptr<Job> job;
    if (!ready_.empty()) {
        job = ready_.front();
        ready_.pop_front();
    } else if (!new_.empty() && int(begun_.size()) < limits_.begun) {
        job = new_.front();
        new_.pop_front();
        begun_.insert(job);
    }
    return job;
}

void Schedule::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        std::shared_ptr<Job> job;
        changed_.wait(lock, [&] { return (job = next()) || (is_over_ && begun_.empty()); });
        if (!job) return;
        lock.unlock();
        const bool has_ended = job->run();
        lock.lock();
        if (has_ended) {
            begun_.erase(job);
            changed_.notify_all();
        } else if (std::exchange(job->is_resumed_, false) || is_over_) {
            ready_.push_back(std::move(job));
        } else {
            waiting_.insert(std::move(job));
        }
    }
}

int Schedule::waiting() const {
    const std::lock_guard lock(mutex_);
    return int(new_.size());
}

int Schedule::begun() const {
    const std::lock_guard lock(mutex_);
    return int(begun_.size());
}

}  // namespace aerie
