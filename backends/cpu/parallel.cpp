// Workers spin for a moment between ops (a wake-up costs 40 us), then sleep. The caller takes the
// parts that no worker has claimed, so a busy machine delays no op for long.
#include "cpu/parallel.h"

#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/float_environment.h"
#include "core/platform.h"

namespace aerie::cpu {

namespace {

void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Returns a value other than `old`.
uint32_t wait_while(const std::atomic<uint32_t>& value, uint32_t old, int spins) {
    for (int i = 0; i < spins; ++i) {
        const uint32_t now = value.load(std::memory_order_acquire);
        if (now != old) return now;
        pause();
    }
    for (;;) {
        platform::sleep_while(value, old);
        const uint32_t now = value.load(std::memory_order_acquire);
        if (now != old) return now;
    }
}

constexpr uint64_t kParts = 0xffffffffu;

}  // namespace

int default_threads() {
    return platform::processors();
}

Pool::Pool(int threads) {
    // With more threads than cores a spinning thread keeps a working one from running.
    spins_ = threads <= default_threads() ? 2000 : 0;
    try {
        for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
    } catch (const std::system_error&) {
        stop();
        throw Error("cpu: cannot start " + std::to_string(threads) + " threads");
    } catch (...) {  // out of memory: running threads would end the program
        stop();
        throw;
    }
}

Pool::~Pool() {
    stop();
}

void Pool::stop() {
    stopping_.store(true);
    calls_.fetch_add(1);
    platform::wake_all(calls_);
    for (std::thread& worker : workers_) worker.join();
}

void Pool::share(int parts, Job job) {
    job_ = job;
    unfinished_.store(uint32_t(parts), std::memory_order_relaxed);
    const uint64_t number = (unclaimed_.load(std::memory_order_relaxed) >> 32) + 1;
    unclaimed_.store(number << 32 | uint64_t(parts), std::memory_order_release);
    calls_.fetch_add(1);
    platform::wake_all(calls_);
    take_parts(0);
    for (uint32_t left; (left = unfinished_.load(std::memory_order_acquire)) != 0;)
        wait_while(unfinished_, left, spins_);
    if (failed_.exchange(false)) std::rethrow_exception(std::exchange(error_, nullptr));
}

// A part that fails counts as finished like any other: other parts may still use what the caller
// has made, so the loop goes on.
void Pool::run_part(int part, int thread) {
    try {
        job_.call(job_.context, part, thread);
    } catch (...) {
        if (!failed_.exchange(true)) error_ = std::current_exception();
    }
}

void Pool::take_parts(int thread) {
    uint64_t seen = unclaimed_.load(std::memory_order_acquire);
    while ((seen & kParts) != 0) {
        if (!unclaimed_.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel,
                                              std::memory_order_acquire))
            continue;
        run_part(int(seen & kParts) - 1, thread);
        if (unfinished_.fetch_sub(1) == 1) platform::wake_one(unfinished_);
        seen = unclaimed_.load(std::memory_order_acquire);
    }
}

void Pool::work(int thread) {
    set_default_float_environment();
    uint32_t seen = 0;
    for (;;) {
        seen = wait_while(calls_, seen, spins_);
        if (stopping_.load()) return;
        take_parts(thread);
    }
}

}  // namespace aerie::cpu
