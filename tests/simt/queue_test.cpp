// The CUDA backend's queue on the stand-in runtime: how many graphs it keeps, what it counts, what
// it times.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "backend/backend.h"
#include "backend/tensor_plan.h"
#include "core/error.h"
#include "cuda/code.h"
#include "cuda/cuda_backend.h"
#include "cuda/device/quant_format.cuh"
#include "cuda/queue.h"
#include "simt/machine.h"

namespace aerie {

namespace {

struct Fixture {
    explicit Fixture(bool profile) : backend(open_cuda("cuda:0", profile)) {
        TensorPlan plan;
        plan.add(a, DType::F32, 1, kCols);
        plan.add(sum, DType::F32, 1, kCols);
        memory = plan.allocate(*backend);
        const std::vector<float> ones(kCols, 1.0f);
        backend->write(a, ones.data());
    }
    void add_once() { backend->run(Add{sum, sum, a}); }
    float first() {
        float value;
        backend->read(sum.col_range(0, 1), &value);
        return value;
    }

    static constexpr int kCols = 64;
    std::unique_ptr<Backend> backend;
    Tensor a, sum;
    Buffer memory;
};

// Otherwise the suites would not show that a kernel reads too early.
TEST(CudaCode, KernelsBeginEarlyHere) {
    EXPECT_TRUE(cuda::kernels_may_begin_early());
}

// Sets AERIE_CUDA_EARLY_LAUNCH as long as it lives.
struct EarlyLaunch {
    explicit EarlyLaunch(const char* value) { setenv("AERIE_CUDA_EARLY_LAUNCH", value, 1); }
    ~EarlyLaunch() { unsetenv("AERIE_CUDA_EARLY_LAUNCH"); }
};

// How many of four kernels are launched to begin early, two of them in a recording.
long launched_beside() {
    Fixture f(false);
    f.backend->replay(1, [&] { f.add_once(); });
    f.backend->sync();
    const long before = simt::launched_beside();
    f.add_once();
    f.add_once();
    f.backend->replay(1, [&] { f.add_once(), f.add_once(); });
    EXPECT_EQ(f.first(), 5);
    return simt::launched_beside() - before;
}

TEST(CudaCode, NoKernelBeginsEarlyWhereNobodyWantsIt) {
    for (const char* value : {"", "1"}) {
        const EarlyLaunch set(value);
        EXPECT_TRUE(cuda::kernels_may_begin_early()) << value;
        EXPECT_GT(launched_beside(), 0) << value;
    }
    const EarlyLaunch off("0");
    EXPECT_FALSE(cuda::kernels_may_begin_early());
    EXPECT_EQ(launched_beside(), 0);
    for (const char* value : {"no", "2", " 0"}) {
        const EarlyLaunch wrong(value);
        std::string message;
        try {
            open_cuda("cuda:0");
        } catch (const Error& error) {
            message = error.what();
        }
        EXPECT_NE(message.find("AERIE_CUDA_EARLY_LAUNCH=" + std::string(value) + ": expected 0"),
                  std::string::npos)
            << message;
    }
}

// A graph's first kernel has none to begin beside.
TEST(CudaQueue, TheFirstKernelOfARecordingBeginsBesideNone) {
    EXPECT_EQ(launched_beside(), 3);
    cuda::Queue queue(0, false);
    queue.let_kernels_start_beside();
    std::vector<bool> beside;
    for (int i = 0; i < 3; ++i)
        queue.replay(1, [&] {
            for (int kernel = 0; kernel < 3; ++kernel) {
                beside.push_back(queue.starts_beside());
                queue.launch("nothing", [] { return cudaSuccess; });
            }
        });
    EXPECT_EQ(beside, (std::vector<bool>{true, true, true, false, true, true}));
}

// Attributes for all launches of a kernel are set once, whatever it runs beside.
TEST(CudaQueue, KnowsAKernelThatItMet) {
    cuda::Queue queue(0, false), other(0, false);
    const int kernels[2] = {};
    for (const int& kernel : kernels) {
        EXPECT_TRUE(queue.is_new(&kernel));
        EXPECT_FALSE(queue.is_new(&kernel));
        EXPECT_TRUE(other.is_new(&kernel));  // it may be of another device
    }
}

TEST(CudaQueue, KeepsABoundedNumberOfGraphs) {
    Fixture f(false);
    int most = 0;
    for (int round = 0; round < 2; ++round)
        for (uint64_t key = 0; key < 300; ++key) {
            for (int i = 0; i < 2; ++i) f.backend->replay(key, [&] { f.add_once(); });
            most = std::max(most, simt::live().executables);
        }
    EXPECT_EQ(most, 256);
    EXPECT_EQ(simt::live().graphs, 0);
    EXPECT_EQ(f.first(), 1200);
}

TEST(CudaQueue, KeepsAGraphThatComesAgain) {
    Fixture f(false);
    int recorded = 0;
    for (int i = 0; i < 1000; ++i) f.backend->replay(7, [&] { ++recorded, f.add_once(); });
    EXPECT_EQ(recorded, 2);  // once run, once captured
    EXPECT_EQ(f.first(), 1000);
}

// A pass that comes only once is not worth a graph.
TEST(CudaQueue, MakesNoGraphOfWhatComesOnce) {
    Fixture f(false);
    for (uint64_t key = 0; key < 5; ++key) f.backend->replay(key, [&] { f.add_once(); });
    EXPECT_EQ(simt::live().executables, 0);
    EXPECT_EQ(f.first(), 5);
}

// Memory that came after a recording cannot be in it.
TEST(CudaQueue, KeepsGraphsThatAreOlderThanTheMemoryThatGoes) {
    Fixture f(false);
    int made = 0;
    const auto pass = [&] { ++made, f.add_once(); };
    for (int i = 0; i < 3; ++i) {
        f.backend->replay(1, pass);
        f.backend->allocate(100);
    }
    EXPECT_EQ(made, 2);
    f.backend->replay(1, pass);
    EXPECT_EQ(made, 2);
    EXPECT_EQ(f.first(), 4);
}

// An exception amid a recording leaves nothing behind, and the queue in order.
TEST(CudaQueue, GivesUpARecordingThatFails) {
    Fixture f(true);
    const auto fail = [&] {
        f.add_once();
        throw Error("no");
    };
    for (int i = 0; i < 2; ++i) EXPECT_THROW(f.backend->replay(1, fail), Error);
    EXPECT_EQ(simt::live().graphs, 0);
    f.backend->replay(1, [&] { f.add_once(); });
    f.add_once();
    EXPECT_EQ(f.first(), 3);  // its first run was not recorded
}

TEST(CudaQueue, CountsKernelsInGraphsAndOutside) {
    Fixture f(false);
    f.backend->replay(1, [&] { f.add_once(), f.add_once(); });  // not yet a graph
    const CommandCounts before = f.backend->command_counts();
    f.add_once();
    for (int i = 0; i < 3; ++i) f.backend->replay(1, [&] { f.add_once(), f.add_once(); });
    f.first();
    const CommandCounts after = f.backend->command_counts();
    EXPECT_EQ(after.dispatches - before.dispatches, 1 + 3 * 2 + 1);  // the read's kernel included
    EXPECT_EQ(after.submissions - before.submissions, 1 + 3 + 1);
    EXPECT_EQ(after.bytes_read - before.bytes_read, sizeof(float));
}

// The matmul's kernel computes silu(gate) * up. Before it at most one kernel packs the columns, and
// none does if a norm has left them packed.
TEST(CudaQueue, GatesInTheMatmul) {
    constexpr int kInner = 64, kOuter = 32;
    struct Case {
        DType weight;
        int rows;
        long kernels;
    };
    for (const Case& c : {Case{DType::F32, 1, 1},
                          {DType::F16, 1, 1},
                          {DType::BF16, 9, 2},
                          {DType::Q8_0, 1, 1},
                          {DType::Q8_0, 9, 1},
                          {DType::Q4_0, 64, 1}}) {
        const auto be = open_cuda("cuda:0");
        be->reserve({.rows = 64, .widest = kInner});
        const std::vector<float> values(kOuter * kInner, 0.5f);
        const WeightBlock blocks[] = {{DType::F32, c.weight, values.data(), kOuter, kInner},
                                      {DType::F32, c.weight, values.data(), kOuter, kInner}};
        const auto weight = be->upload_weight(blocks, WeightUse::gated);
        TensorPlan plan;
        Tensor out, gate_up, x;
        plan.add(out, be->activation_type(*weight), c.rows, kOuter);
        plan.add(gate_up, DType::F32, c.rows, 2 * kOuter);
        plan.add(x, be->activation_type(*weight), c.rows, kInner);
        const Buffer memory = plan.allocate(*be);
        const long before = be->command_counts().dispatches;
        be->run(MatmulGated{out, gate_up, x, *weight, Activation::silu});
        EXPECT_EQ(be->command_counts().dispatches - before, c.kernels)
            << name(c.weight) << ", " << c.rows;
        Tensor stream, scale;
        TensorPlan more;
        more.add(stream, DType::F32, c.rows, kInner);
        more.add(scale, DType::F32, 1, kInner);
        const Buffer more_memory = more.allocate(*be);
        const long then = be->command_counts().dispatches;
        be->run(RmsNorm{x, stream, scale, 1e-5f, {weight.get()}});
        be->run(MatmulGated{out, gate_up, x, *weight, Activation::silu});
        const bool is_held = c.rows == 1 && c.weight != DType::F32;  // normalised by the matmul
        EXPECT_EQ(be->command_counts().dispatches - then, is_held ? 1 : 2)
            << name(c.weight) << ", " << c.rows;
    }
}

// A type without kernels must not be read as another one.
TEST(CudaFormats, AreThoseOfTheTypesThatAreStored) {
    const auto type_of = [](auto format) { return decltype(format)::kType; };
    for (int i = 0; i <= int(DType::Bool); ++i) {
        const DType type = DType(i);
        if (cuda::layout_of(type).groups > 0) {
            EXPECT_EQ(cuda::with_format(type, type_of), type) << name(type);
        } else {
            EXPECT_THROW(cuda::with_format(type, type_of), Error) << name(type);
        }
    }
}

TEST(CudaQueue, TimesEveryKernelOnce) {
    Fixture f(true);
    const auto time_of = [&](const std::string& op) {
        OpTime found;
        for (const OpTime& time : f.backend->op_times())
            if (time.op == op) found = time;
        return found;
    };
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 1500; ++i) f.add_once();  // more than the timer holds
    for (int i = 0; i < 3; ++i) f.backend->replay(1, [&] { f.add_once(), f.add_once(); });
    const OpTime time = time_of("add");
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(time.count, 1500 + 3 * 2);
    EXPECT_GT(time.seconds, 0);
    EXPECT_LT(time.seconds, passed.count());
    EXPECT_EQ(time_of("add").count, time.count);  // and not again
    EXPECT_EQ(f.first(), 1506);
}

TEST(CudaQueue, TellsNoTimesUnlessAsked) {
    Fixture f(false);
    f.add_once();
    EXPECT_TRUE(f.backend->op_times().empty());
    EXPECT_EQ(simt::live().events, 0);
}

TEST(CudaQueue, GivesEverythingBack) {
    {
        Fixture f(true);
        f.add_once();
        for (int i = 0; i < 2; ++i) f.backend->replay(1, [&] { f.add_once(); });
        EXPECT_GT(simt::live().events, 0);
        f.backend.reset();  // memory outlives it
    }
    const simt::Live left = simt::live();
    EXPECT_EQ(left.streams + left.graphs + left.executables + left.events, 0);
    EXPECT_EQ(left.buffers + left.pinned, 0);
}

}  // namespace
}  // namespace aerie
