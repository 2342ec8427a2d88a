// CPU: opening by name, instruction sets by name, memory, scratch, and the thread pool.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <numeric>
#include <thread>

#include "backend/registry.h"
#include "backend/tensor_plan.h"
#include "core/error.h"
#include "cpu/cpu_backend.h"
#include "cpu/memory.h"
#include "cpu/parallel.h"
#include "io/damage.h"
#include "ops/device_test.h"

namespace aerie {

namespace {

using test::error_of;

TEST(CpuDevice, IsListedAndOpens) {
    const auto devices = list_devices();
    ASSERT_GE(devices.size(), 1u);
    const Capabilities& cpu = devices.back();
    EXPECT_EQ(cpu.name, "cpu");
    EXPECT_NE(cpu.description.find("thread"), std::string::npos);
    EXPECT_GT(cpu.memory_bytes, size_t(1) << 28);
    // The default is a GPU if there is one, and never a Vulkan device that is a CPU.
    EXPECT_EQ(open_device("")->capabilities().name, best_device(devices));
    EXPECT_NE(open_device("cpu", {.threads = 3})->capabilities().description.find("3 threads"),
              std::string::npos);
}

TEST(CpuDevice, NamesWhatIsMissing) {
    EXPECT_NE(error_of([] { open_device("vulkan:99"); }).find("vulkan:99: "), std::string::npos);
    for (const char* device : {"cuda", "cuda:", "cuda:x", "cuda:0x", "cuda:-1", "cuda:99"}) {
        const std::string message = error_of([=] { open_device(device); });
        EXPECT_EQ(message.find(device), 0u) << message;
        EXPECT_EQ(message.find('\n'), std::string::npos);
    }
    EXPECT_NE(error_of([] { open_device("abacus"); }).find("abacus"), std::string::npos);
    setenv("AERIE_CPU_ISA", "mmx", 1);
    EXPECT_NE(error_of([] { open_cpu(1); }).find("expected portable, avx2, avxvnni, avx512 or amx"),
              std::string::npos);
    setenv("AERIE_CPU_ISA", "avx512", 1);
    const std::string message = error_of([] { open_cpu(1); });
    EXPECT_TRUE(message.empty() || message.find("lacks it") != std::string::npos);
    unsetenv("AERIE_CPU_ISA");
}

TEST(CpuDevice, MemoryIsZeroedAlignedAndRefusedInOneLine) {
    const auto backend = open_cpu(1);
    const Buffer buffer = backend->allocate(100003);
    std::vector<char> bytes(100003, 1);
    Tensor all = dense(buffer.get(), DType::Bool, 1, 100003);
    backend->read(all, bytes.data());
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0), 100003);
    EXPECT_NE(error_of([&] { (void)backend->allocate(~size_t(0) - 5); }).find("out of memory"),
              std::string::npos);
    EXPECT_NE(error_of([&] { (void)backend->allocate(size_t(1) << 60); }).find("out of memory"),
              std::string::npos);
}

TEST(CpuDevice, ScratchGrowsWithThreadsAndVocabulary) {
    const auto one = open_cpu(1), two = open_cpu(2), three = open_cpu(3);
    const Limits limits{
        .rows = 64, .top_k = 10, .widest = 4096, .vocab = 32000, .context = 2048, .heads = 32};
    const size_t of_a_thread = two->scratch_bytes(limits) - one->scratch_bytes(limits);
    EXPECT_GT(of_a_thread, size_t(3) * 32000 * 4);
    EXPECT_EQ(three->scratch_bytes(limits), two->scratch_bytes(limits) + of_a_thread);
    EXPECT_LT(one->scratch_bytes(limits), size_t(2) << 20);
}

TEST(CpuDevice, HasNoMoreMemoryThanItsProcessMayTake) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "SKIPPED: a sanitizer's own memory is beyond any limit";
#endif
    rlimit before = {};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
    const rlimit half = {cpu_capabilities(1).memory_bytes / 2, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &half), 0);
    const size_t bytes = cpu_capabilities(1).memory_bytes;
    setrlimit(RLIMIT_AS, &before);
    EXPECT_EQ(bytes, half.rlim_cur);
}

// An op that writes beyond its tensor, but within the allocation, is an error of AddressSanitizer.
TEST(CpuDevice, GapsBetweenTensorsBelongToNobody) {
#if defined(__SANITIZE_ADDRESS__)
    const auto backend = open_cpu(1);
    Tensor a, b;
    TensorPlan plan;
    plan.add(a, DType::F32, 1, 3);
    plan.add(b, DType::F32, 2, 32);
    const Buffer memory = plan.allocate(*backend);
    const auto poisoned = [](const Tensor& t, int offset) {
        return __asan_address_is_poisoned(cpu::row<std::byte>(t, 0) + offset) != 0;
    };
    EXPECT_FALSE(poisoned(a, 0) || poisoned(a, 11) || poisoned(b, 0) || poisoned(b, 255));
    EXPECT_TRUE(poisoned(a, 12) && poisoned(b, -1) && poisoned(b, 256) && poisoned(b, 511));
#else
    GTEST_SKIP() << "SKIPPED: only AddressSanitizer knows";
#endif
}

// An exception of a worker reaches the caller, and not before all threads have finished with the
// caller's data.
TEST(Pool, CarriesExceptionsToTheCaller) {
    cpu::Pool pool(3);
    for (int failing : {0, 7, 63}) {
        std::atomic<int> done{0};
        const auto body = [&](int first, int last, int) {
            for (int i = first; i < last; ++i) {
                if (i == failing) throw std::bad_alloc();
                std::this_thread::sleep_for(std::chrono::microseconds(100));
            }
            done += last - first;
        };
        EXPECT_THROW(pool.run(64, 1e6, body), std::bad_alloc);
        const int when_thrown = done;
        EXPECT_GT(when_thrown, 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        EXPECT_EQ(done, when_thrown) << "a thread was still at work";
    }
    EXPECT_THROW(
        pool.run(64, 1e6, [](int, int, int) { throw std::runtime_error("every part fails"); }),
        std::runtime_error);
    std::atomic<int> sum{0};  // the pool still works
    pool.run(64, 1e6, [&](int first, int last, int) { sum += last - first; });
    EXPECT_EQ(sum, 64);
}

TEST(Pool, RunsEveryItemOnce) {
    for (int threads : {1, 2, 3, 8}) {
        cpu::Pool pool(threads);
        for (int count : {0, 1, 2, 7, 100, 1000})
            for (int grain : {1, 8})
                for (int repeat = 0; repeat < 50; ++repeat) {
                    std::vector<int> hits(size_t(count), 0);
                    pool.run(count, 1e6, grain, [&](int first, int last, int thread) {
                        EXPECT_TRUE(thread >= 0 && thread < threads && first % grain == 0);
                        for (int i = first; i < last; ++i) ++hits[size_t(i)];
                    });
                    ASSERT_EQ(std::count(hits.begin(), hits.end(), 1), count);
                }
    }
}

TEST(Pool, WakesSleepingWorkers) {
    cpu::Pool pool(4);
    for (int repeat = 0; repeat < 5; ++repeat) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        std::atomic<int> sum{0};
        pool.run(100, 1e6, [&](int first, int last, int) {
            for (int i = first; i < last; ++i) sum += i;
        });
        EXPECT_EQ(sum, 4950);
    }
}

TEST(Pool, KeepsSmallLoopsOnTheCaller) {
    cpu::Pool pool(4);
    const auto caller = std::this_thread::get_id();
    pool.run(100, 1, [&](int first, int last, int thread) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        EXPECT_EQ(thread, 0);
        EXPECT_EQ(last - first, 100);
    });
}

}  // namespace
}  // namespace aerie
