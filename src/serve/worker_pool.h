// Threads for work that takes too long for the thread of the sockets but less than an answer:
// reading requests, cutting texts into tokens.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace aerie {

class Task {
  public:
    virtual ~Task() = default;
    virtual void run() = 0;  // must not throw
};

class WorkerPool {
  public:
    // `most_bytes` limits the bytes of all tasks that wait or run. Throws Error if the threads
    // cannot be started.
    WorkerPool(int count, size_t most_bytes);
    ~WorkerPool();  // runs all tasks that were given, then returns
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    // Adds a task that counts as `bytes`. False if more than `most_waiting` tasks would wait for a
    // worker, or if all tasks together would have too many bytes.
    bool give(std::shared_ptr<Task> task, size_t bytes, int most_waiting);
    // Takes back a task that has not begun: true, and it is not run. False if it has begun.
    bool remove(const Task& task);

    int waiting() const;

  private:
    struct Given {
        std::shared_ptr<Task> task;
        size_t bytes = 0;
    };
    void work();
    void stop();

    const size_t most_bytes_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::list<Given> waiting_;
    size_t bytes_ = 0;
    int idle_ = 0;  // workers without a task
    bool is_over_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace aerie
