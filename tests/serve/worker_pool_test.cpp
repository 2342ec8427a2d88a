// The worker pool: how many tasks may wait, by number and by bytes; and threads that cannot be
// started.
#include "serve/worker_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <semaphore>

#include "core/error.h"
#include "serve/schedule.h"
#include "serve/threads.h"

namespace aerie {
namespace {

class Gated : public Task {
  public:
    void run() override {
        ++runs;
        gate_.acquire();
    }
    void let_go() { gate_.release(); }
    std::atomic<int> runs = 0;

  private:
    std::counting_semaphore<8> gate_{0};
};

void wait_until(const std::function<bool()>& holds) {
    for (int i = 0; i < 20'000 && !holds(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_TRUE(holds());
}

TEST(WorkerPool, RefuseWhatIsTooMuch) {
    std::vector<std::shared_ptr<Gated>> tasks;
    for (int i = 0; i < 6; ++i) tasks.push_back(std::make_shared<Gated>());
    WorkerPool workers(1, 100);
    ASSERT_TRUE(workers.give(tasks[0], 40, 2));
    wait_until([&] { return tasks[0]->runs == 1; });
    EXPECT_TRUE(workers.give(tasks[1], 40, 2));
    EXPECT_FALSE(workers.give(tasks[2], 21, 2)) << "it would be 101 bytes";
    EXPECT_TRUE(workers.give(tasks[3], 20, 2));
    EXPECT_FALSE(workers.give(tasks[4], 0, 2)) << "two wait";
    EXPECT_EQ(workers.waiting(), 2);
    EXPECT_TRUE(workers.remove(*tasks[1]));
    EXPECT_FALSE(workers.remove(*tasks[1]));
    EXPECT_FALSE(workers.remove(*tasks[0])) << "it has begun";
    EXPECT_TRUE(workers.give(tasks[5], 40, 2));
    for (const int i : {0, 3, 5}) tasks[size_t(i)]->let_go();
    wait_until([&] { return tasks[5]->runs == 1 && workers.waiting() == 0; });
    EXPECT_EQ(tasks[1]->runs + tasks[2]->runs + tasks[4]->runs, 0);
    // A task that has ended no longer counts with its bytes.
    const auto last = std::make_shared<Gated>();
    last->let_go();
    bool is_given = false;
    wait_until([&] { return is_given = is_given || workers.give(last, 100, 2); });
}

// An idle worker takes a task even if none may wait.
TEST(WorkerPool, AnIdleOneNeedsNoRoom) {
    const auto first = std::make_shared<Gated>(), second = std::make_shared<Gated>();
    WorkerPool workers(1, 100);
    EXPECT_TRUE(workers.give(first, 1, 0));
    wait_until([&] { return first->runs == 1; });
    EXPECT_FALSE(workers.give(second, 1, 0));
    EXPECT_FALSE(workers.give(second, 1, -3));
    first->let_go();
}

// Runs `make` in a process that has no memory for the stacks of more threads.
template <typename Make>
void with_little_room(const Make& make) {
    rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = 600 << 20;
    setrlimit(RLIMIT_AS, &limit);
    try {
        make();
        std::_Exit(3);
    } catch (const Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        std::_Exit(0);
    }
}

TEST(ThreadsDeathTest, TooFewAreAnErrorAndNotTheEnd) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    const auto exits = testing::ExitedWithCode(0);
    EXPECT_EXIT(with_little_room([] { WorkerPool workers(1000, 1); }), exits,
                "^serve: cannot start 1000 threads[^\n]*\n$");
    EXPECT_EXIT(with_little_room([] {
                    Schedule schedule({1000, 1000, 1});
                }),
                exits, "^serve: cannot start 1000 threads[^\n]*\n$");
}

}  // namespace
}  // namespace aerie
