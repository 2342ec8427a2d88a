// The order in which jobs run: limits, jobs that wait for their client, giving up.
#include "serve/schedule.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <semaphore>

namespace aerie {
namespace {

// A job that runs until let_go().
class Gated : public Job {
  public:
    explicit Gated(std::function<void()> began = {}) : began_(std::move(began)) {}
    bool run() override {
        ++runs;
        if (began_) began_();
        gate_.acquire();
        return !std::exchange(waits_, false);
    }
    void give_up() override {
        given_up = true;
        gate_.release();
    }
    bool set_aside() override {
        if (!yields) return false;
        ++asides;
        return true;
    }
    void let_go(bool waits = false) {
        waits_ = waits;
        gate_.release();
    }

    std::atomic<int> runs = 0, asides = 0;
    std::atomic<bool> given_up = false, yields = false;

  private:
    std::function<void()> began_;
    std::counting_semaphore<8> gate_{0};
    bool waits_ = false;
};

void wait_until(const std::function<bool()>& holds) {
    for (int i = 0; i < 20'000 && !holds(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_TRUE(holds());
}

TEST(Schedule, RunsSoManyAtATimeInTheOrderOfArrival) {
    std::mutex mutex;
    std::vector<int> order;
    std::vector<std::shared_ptr<Gated>> jobs;
    Schedule schedule({2, 2, 64});
    for (int i = 0; i < 6; ++i) {
        jobs.push_back(std::make_shared<Gated>([&, i] {
            const std::lock_guard lock(mutex);
            order.push_back(i);
        }));
        ASSERT_TRUE(schedule.add(jobs.back()));
    }
    const auto begun = [&] {
        const std::lock_guard lock(mutex);
        return order.size();
    };
    for (size_t i = 0; i < 6; ++i) {
        wait_until([&] { return begun() == std::min<size_t>(i + 2, 6); });
        EXPECT_LE(schedule.begun(), 2);
        jobs[i]->let_go();
        wait_until([&] { return schedule.begun() + schedule.waiting() == int(5 - i); });
    }
    std::sort(order.begin(), order.begin() + 2);  // the first two began together
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST(Schedule, RefusesWhatTheQueueHasNoRoomFor) {
    Schedule schedule({1, 1, 2});
    std::vector<std::shared_ptr<Gated>> jobs;
    for (int i = 0; i < 4; ++i) jobs.push_back(std::make_shared<Gated>());
    ASSERT_TRUE(schedule.add(jobs[0]));
    wait_until([&] { return schedule.begun() == 1; });
    EXPECT_TRUE(schedule.add(jobs[1]));
    EXPECT_TRUE(schedule.add(jobs[2]));
    EXPECT_FALSE(schedule.add(jobs[3]));
    EXPECT_TRUE(schedule.remove(jobs[1]));
    EXPECT_FALSE(schedule.remove(jobs[1]));
    EXPECT_FALSE(schedule.remove(jobs[0]));  // it has begun
    EXPECT_TRUE(schedule.add(jobs[3]));
    for (const int i : {0, 2, 3}) jobs[size_t(i)]->let_go();
    wait_until([&] { return schedule.begun() + schedule.waiting() == 0; });
    EXPECT_EQ(jobs[1]->runs, 0);
}

TEST(Schedule, WhoWaitsForItsClientLetsOthersRun) {
    Schedule schedule({1, 2, 8});
    const auto slow = std::make_shared<Gated>(), quick = std::make_shared<Gated>();
    schedule.add(slow);
    wait_until([&] { return slow->runs == 1; });
    schedule.add(quick);
    slow->let_go(true);
    wait_until([&] { return quick->runs == 1; });
    EXPECT_EQ(schedule.begun(), 2);
    quick->let_go();
    wait_until([&] { return schedule.begun() == 1; });
    schedule.resume(slow);
    wait_until([&] { return slow->runs == 2; });
    slow->let_go();
    wait_until([&] { return schedule.begun() == 0; });
}

TEST(Schedule, AsManyBeginAsThereAreTalks) {
    Schedule schedule({1, 1, 8});
    const auto slow = std::make_shared<Gated>(), next = std::make_shared<Gated>();
    schedule.add(slow);
    schedule.add(next);
    slow->let_go(true);
    wait_until([&] { return slow->runs == 1; });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(next->runs, 0);
    schedule.resume(slow);
    slow->let_go();
    wait_until([&] { return next->runs == 1; });
    next->let_go();
    wait_until([&] { return schedule.begun() == 0; });
}

// Any number of jobs may wait for their clients; none of them keeps another from beginning.
TEST(Schedule, WhoWaitsForItsClientGivesUpItsPlace) {
    Schedule schedule({1, 1, 8});
    std::vector<std::shared_ptr<Gated>> slow;
    for (int i = 0; i < 4; ++i) {
        slow.push_back(std::make_shared<Gated>());
        slow.back()->yields = true;
        ASSERT_TRUE(schedule.add(slow.back()));
        slow.back()->let_go(true);
        wait_until([&] { return slow.back()->runs == 1; });
        wait_until([&] { return i == 0 || slow[size_t(i) - 1]->asides == 1; });
    }
    EXPECT_EQ(slow[3]->asides, 0) << "nobody wanted its place";
    EXPECT_EQ(schedule.begun(), 4);
    // They go on in the order of their resumes, and wait for places together with new jobs.
    const auto fresh = std::make_shared<Gated>();
    schedule.resume(slow[1]);
    wait_until([&] { return slow[1]->runs == 2; });
    schedule.add(fresh);
    schedule.resume(slow[0]);
    slow[1]->let_go();
    wait_until([&] { return fresh->runs == 1; });
    EXPECT_EQ(slow[0]->runs, 1);
    fresh->let_go();
    wait_until([&] { return slow[0]->runs == 2; });
    slow[0]->let_go();
    for (const int i : {2, 3}) {
        schedule.resume(slow[size_t(i)]);
        wait_until([&] { return slow[size_t(i)]->runs == 2; });
        slow[size_t(i)]->let_go();
    }
    wait_until([&] { return schedule.begun() == 0; });
}

// The client resumes the job before the job begins to wait for it.
TEST(Schedule, AResumeBeforeTheWaitCounts) {
    Schedule schedule({1, 1, 8});
    const auto job = std::make_shared<Gated>();
    schedule.add(job);
    wait_until([&] { return job->runs == 1; });
    schedule.resume(job);
    job->let_go(true);
    wait_until([&] { return job->runs == 2; });
    job->let_go();
    wait_until([&] { return schedule.begun() == 0; });
}

TEST(Schedule, ItsEndEndsAllJobs) {
    const auto running = std::make_shared<Gated>(), parked = std::make_shared<Gated>(),
               queued = std::make_shared<Gated>();
    {
        Schedule schedule({1, 2, 8});
        schedule.add(parked);
        parked->let_go(true);
        wait_until([&] { return parked->runs == 1; });
        schedule.add(running);
        schedule.add(queued);
        wait_until([&] { return running->runs == 1; });
    }
    EXPECT_TRUE(running->given_up && parked->given_up && queued->given_up);
    EXPECT_EQ(parked->runs, 2);
}

}  // namespace
}  // namespace aerie
