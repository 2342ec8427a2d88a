// A pool of threads that share the parts of one loop. Which thread takes a part never changes a
// bit.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace aerie::cpu {

// One per core that this process may use.
int default_threads();

class Pool {
  public:
    explicit Pool(int threads);  // the caller included; throws Error if they cannot be started
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    int threads() const { return int(workers_.size()) + 1; }

    // Calls body(first, last, thread) on ranges that cover [0, count) and begin at multiples of
    // `grain`; returns when all are done. `work` is the cost of one item in multiply-adds or so: a
    // small loop runs on the caller, since waking a thread costs more. Not reentrant. If bodies
    // throw, the first exception is rethrown here, when no thread is at work any more.
    template <class Body>
    void run(int count, double work, int grain, const Body& body) {
        const int grains = (count + grain - 1) / grain;
        const int parts = std::min(grains, parts_for(work * count));
        if (parts <= 1) {
            if (count > 0) body(0, count, 0);
            return;
        }
        const auto part = [&](int index, int thread) {
            const int first = int(int64_t(grains) * index / parts) * grain;
            const int last = int(int64_t(grains) * (index + 1) / parts) * grain;
            body(first, std::min(last, count), thread);
        };
        share(parts, {&part, [](const void* context, int index, int thread) {
                          (*static_cast<const decltype(part)*>(context))(index, thread);
                      }});
    }
    template <class Body>
    void run(int count, double work, const Body& body) {
        run(count, work, 1, body);
    }

  private:
    static constexpr double kWorthSharing = 32768;
    static constexpr double kPartWork = 131072;  // enough to hide the cost of claiming a part
    static constexpr int kPartsPerThread = 8;

    // With much work there are more parts than threads, so that a thread that another program slows
    // down takes fewer of them.
    int parts_for(double work) const {
        if (work < kWorthSharing) return 1;
        const double most = threads() * kPartsPerThread;
        return std::max(threads(), int(std::min(most, work / kPartWork)));
    }

    struct Job {
        const void* context = nullptr;
        void (*call)(const void* context, int part, int thread) = nullptr;
    };
    void share(int parts, Job job);
    void run_part(int part, int thread);
    void take_parts(int thread);
    void work(int thread);
    void stop();

    std::vector<std::thread> workers_;
    int spins_ = 0;  // before a waiting thread sleeps
    Job job_;        // read only by threads that have claimed a part
    // The number of the job, and how many of its parts are unclaimed: one word, so that a thread
    // that comes late cannot claim a part of a later job by mistake.
    std::atomic<uint64_t> unclaimed_{0};
    std::atomic<uint32_t> unfinished_{0};
    std::atomic<uint32_t> calls_{0};  // sleeping workers wait for it to change
    std::atomic<bool> stopping_{false};
    std::atomic<bool> failed_{false};
    std::exception_ptr error_;  // thrown by the part that set failed_
};

}  // namespace aerie::cpu
