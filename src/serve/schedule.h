// Who is answered when: so many at a time, the others in the order in which they came.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace aerie {

class Job {
  public:
    virtual ~Job() = default;
    // Goes on with the work. False: its client must read first; it is run again after resume().
    // Throws nothing.
    virtual bool run() = 0;
    virtual void give_up() = 0;  // from any thread: ends soon

  private:
    friend class Schedule;
    bool is_resumed_ = false;
};

struct ScheduleLimits {
    int running = 1;  // jobs at a time, a thread each
    int begun = 1;    // jobs that are run or wait for their client; at least `running`
    int waiting = 64;
};

class Schedule {
  public:
    explicit Schedule(const ScheduleLimits& limits);
    ~Schedule();  // every job gives up and ends
    Schedule(const Schedule&) = delete;
    Schedule& operator=(const Schedule&) = delete;

    // False if too many wait already.
    bool add(std::shared_ptr<Job> job);
    // A job that returned false, or is about to, goes on.
    void resume(const std::shared_ptr<Job>& job);
    // Not run, if it has not begun; true in that case.
    bool remove(const std::shared_ptr<Job>& job);
    void give_up_all();

    int waiting() const;
    int begun() const;

  private:
    void work();
    std::shared_ptr<Job> next();

    const ScheduleLimits limits_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<Job>> new_, ready_;    // not begun; to be gone on with
    std::set<std::shared_ptr<Job>> begun_, waiting_;  // all; those whose client must read
    bool is_over_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace aerie
