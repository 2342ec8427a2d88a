// Nothing that is done after a task was given needs memory.
#include "serve/worker_pool.h"

#include <algorithm>
#include <utility>

#include "serve/threads.h"

namespace aerie {

WorkerPool::WorkerPool(int count, size_t most_bytes) : most_bytes_(most_bytes), idle_(count) {
    threads_ = start_threads(
        count, [this] { work(); }, [this] { stop(); });
}

WorkerPool::~WorkerPool() {
    stop();
    for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::stop() {
    {
        const std::lock_guard lock(mutex_);
        is_over_ = true;
    }
    changed_.notify_all();
}

bool WorkerPool::give(std::shared_ptr<Task> task, size_t bytes, int most_waiting) {
    std::list<Given> one;
    one.push_back({std::move(task), bytes});
    {
        const std::lock_guard lock(mutex_);
        // A task that an idle worker is about to take does not count as waiting.
        if (int(waiting_.size()) >= std::max(0, most_waiting) + idle_) return false;
        if (bytes > most_bytes_ - std::min(most_bytes_, bytes_)) return false;
        bytes_ += bytes;
        waiting_.splice(waiting_.end(), one);
    }
    changed_.notify_one();
    return true;
}

bool WorkerPool::remove(const Task& task) {
    std::list<Given> removed;  // destroyed after the lock
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const Given& given) { return given.task.get() == &task; });
    if (found == waiting_.end()) return false;
    bytes_ -= found->bytes;
    removed.splice(removed.end(), waiting_, found);
    return true;
}

int WorkerPool::waiting() const {
    const std::lock_guard lock(mutex_);
    return int(waiting_.size());
}

void WorkerPool::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return is_over_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        std::list<Given> taken;
        taken.splice(taken.end(), waiting_, waiting_.begin());
        --idle_;
        lock.unlock();
        const size_t bytes = taken.front().bytes;
        taken.front().task->run();
        taken.clear();
        lock.lock();
        ++idle_;
        bytes_ -= bytes;
    }
}

}  // namespace aerie
