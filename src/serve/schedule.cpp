// Jobs move from list to list by splicing: once a job was added, nothing needs memory.
#include "serve/schedule.h"

#include <algorithm>
#include <utility>

#include "serve/threads.h"

namespace aerie {

Schedule::Schedule(const ScheduleLimits& limits) : limits_(limits) {
    threads_ = start_threads(
        limits.running, [this] { work(); }, [this] { stop(); });
}

Schedule::~Schedule() {
    give_up_all();
    stop();
    for (std::thread& thread : threads_) thread.join();
}

void Schedule::stop() {
    {
        const std::lock_guard lock(mutex_);
        is_over_ = true;
        while (!parked_.empty()) let_go_on(*parked_.front());
    }
    changed_.notify_all();
}

// Idle threads count as room, too: they are about to take a job.
int Schedule::free_room() const {
    const int wanted = int(running_.size() + ready_.size() + line_.size()) - new_;
    return limits_.waiting + std::max(0, limits_.running - wanted) - new_;
}

bool Schedule::add(std::shared_ptr<Job> job) {
    Jobs one;
    one.push_back(std::move(job));
    {
        const std::lock_guard lock(mutex_);
        if (free_room() <= 0) return false;
        Job& added = *one.front();
        added.at_ = one.begin();
        added.state_ = Job::State::in_line;
        line_.splice(line_.end(), one);
        ++new_;
    }
    changed_.notify_all();
    return true;
}

// This function and the four below it are called under the mutex.
void Schedule::move(Job& job, Jobs& to, Job::State state) {
    Jobs& from = job.state_ == Job::State::in_line   ? line_
                 : job.state_ == Job::State::ready   ? ready_
                 : job.state_ == Job::State::running ? running_
                                                     : parked_;
    to.splice(to.end(), from, job.at_);
    job.state_ = state;
}

void Schedule::let_go_on(Job& job) {
    if (job.has_place_)
        move(job, ready_, Job::State::ready);
    else
        move(job, line_, Job::State::in_line);
}

// Parks a job until its client reads, unless resume() was quicker.
void Schedule::park(Job& job) {
    if (std::exchange(job.is_resumed_, false) || is_over_)
        let_go_on(job);
    else
        move(job, parked_, Job::State::parked);
}

// The parked job that has waited longest among those that can lose their place; null if there is
// none.
Job* Schedule::slow() const {
    const auto found = std::find_if(parked_.begin(), parked_.end(), [](const auto& job) {
        return job->has_place_ && !job->keeps_place_;
    });
    return found == parked_.end() ? nullptr : found->get();
}

bool Schedule::can_go_on() const {
    return !ready_.empty() || (!line_.empty() && (places_ < limits_.begun || slow()));
}

void Schedule::resume(const std::shared_ptr<Job>& job) {
    {
        const std::lock_guard lock(mutex_);
        if (job->state_ == Job::State::parked)
            let_go_on(*job);
        else
            job->is_resumed_ = true;
    }
    changed_.notify_all();
}

bool Schedule::remove(const std::shared_ptr<Job>& job) {
    const std::lock_guard lock(mutex_);
    if (job->state_ != Job::State::in_line || job->has_begun_) return false;
    line_.erase(job->at_);
    job->state_ = Job::State::none;
    --new_;
    return true;
}

void Schedule::give_up_all() {
    {
        const std::lock_guard lock(mutex_);
        for (const Jobs* jobs : {&line_, &ready_, &running_, &parked_})
            for (const auto& job : *jobs) job->give_up();
        while (!parked_.empty()) let_go_on(*parked_.front());
    }
    changed_.notify_all();
}

void Schedule::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] {
            return can_go_on() || (is_over_ && line_.empty() && ready_.empty() && parked_.empty());
        });
        if (!can_go_on()) return;
        run_next(lock);
    }
}

// Jobs that have a place come first.
void Schedule::run_next(std::unique_lock<std::mutex>& lock) {
    if (!ready_.empty()) return run(ready_.front(), lock);
    if (places_ >= limits_.begun) return set_aside(*slow()->at_, lock);
    Job& job = *line_.front();
    job.has_place_ = true;
    ++places_;
    if (!std::exchange(job.has_begun_, true)) {
        ++begun_;
        --new_;
    }
    run(line_.front(), lock);
}

void Schedule::run(std::shared_ptr<Job> job, std::unique_lock<std::mutex>& lock) {
    move(*job, running_, Job::State::running);
    job->keeps_place_ = false;
    lock.unlock();
    const bool has_ended = job->run();
    lock.lock();
    if (has_ended) {
        running_.erase(job->at_);
        job->state_ = Job::State::none;
        --begun_;
        --places_;
    } else {
        park(*job);
    }
    changed_.notify_all();
    lock.unlock();
    job.reset();  // Frees the job's memory without the lock.
    lock.lock();
}

// The job counts as running meanwhile, since its client may read again.
void Schedule::set_aside(std::shared_ptr<Job> job, std::unique_lock<std::mutex>& lock) {
    move(*job, running_, Job::State::running);
    lock.unlock();
    const bool is_aside = job->set_aside();
    lock.lock();
    job->keeps_place_ = !is_aside;
    if (is_aside) {
        job->has_place_ = false;
        --places_;
    }
    park(*job);
    changed_.notify_all();
}

int Schedule::room() const {
    const std::lock_guard lock(mutex_);
    return free_room();
}

int Schedule::waiting() const {
    const std::lock_guard lock(mutex_);
    return new_;
}

int Schedule::begun() const {
    const std::lock_guard lock(mutex_);
    return begun_;
}

}  // namespace aerie
