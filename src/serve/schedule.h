// Decides when each request is answered: some at a time, the others in the order in which they
// came.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace aerie {

class Job {
  public:
    virtual ~Job() = default;
    // Continues the work. True: the job has ended. False: its client must read first; the job is
    // run again after resume(). Must not throw.
    virtual bool run() = 0;
    virtual void give_up() = 0;  // from any thread: the job is to end soon
    // Gives up the job's place while it waits for its client, so that another job may begin. The
    // job gets another place before it is run again. False: it cannot. Must not throw.
    virtual bool set_aside() { return false; }

  private:
    friend class Schedule;
    // In line: the job waits for a place. Ready: it has one. Parked: it waits for its client.
    enum class State { none, in_line, ready, running, parked };
    State state_ = State::none;
    bool has_begun_ = false, has_place_ = false, keeps_place_ = false, is_resumed_ = false;
    std::list<std::shared_ptr<Job>>::iterator at_;
};

struct ScheduleLimits {
    int running = 1;  // jobs at a time, a thread each
    int begun = 1;    // places, for jobs that run or wait for their client; at least `running`
    int waiting = 64;
};

class Schedule {
  public:
    // Throws Error if the threads cannot be started.
    explicit Schedule(const ScheduleLimits& limits);
    ~Schedule();  // every job gives up and ends
    Schedule(const Schedule&) = delete;
    Schedule& operator=(const Schedule&) = delete;

    // Puts a job in line. False if too many wait already.
    bool add(std::shared_ptr<Job> job);
    // Lets a job go on that returned false from run(), or is about to.
    void resume(const std::shared_ptr<Job>& job);
    // Takes back a job that has not begun: true, and it is not run. False if it has begun.
    bool remove(const std::shared_ptr<Job>& job);
    void give_up_all();

    int room() const;  // jobs that add() would take now
    int waiting() const;
    int begun() const;

  private:
    using Jobs = std::list<std::shared_ptr<Job>>;

    void work();
    void stop();
    void move(Job& job, Jobs& to, Job::State state);
    void let_go_on(Job& job);
    void park(Job& job);
    Job* slow() const;
    bool can_go_on() const;
    void run_next(std::unique_lock<std::mutex>& lock);
    void run(std::shared_ptr<Job> job, std::unique_lock<std::mutex>& lock);
    void set_aside(std::shared_ptr<Job> job, std::unique_lock<std::mutex>& lock);
    int free_room() const;

    const ScheduleLimits limits_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    Jobs line_, ready_, running_, parked_;
    int new_ = 0, begun_ = 0, places_ = 0;  // jobs that have not begun, that have; places taken
    bool is_over_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace aerie
