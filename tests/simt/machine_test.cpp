// The CUDA backend on machines that are not as one would like: several GPUs, several threads, a GPU
// without code or a broken one, kernels that do not start or fail, copies that take their time.
#include "simt/machine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "backend/backend.h"
#include "backend/tensor_plan.h"
#include "core/error.h"
#include "cuda/code.h"
#include "cuda/cuda_backend.h"

namespace aerie {

namespace {

class CudaMachine : public testing::Test {
  protected:
    void SetUp() override { simt::set_gpus({simt::Gpu{}}); }
    void TearDown() override {
        EXPECT_EQ(simt::live().streams + simt::live().buffers + simt::live().pinned, 0);
        simt::set_gpus({simt::Gpu{}});
    }
};

// Two tensors on a device, one of them a sum of the other.
struct Sum {
    explicit Sum(const std::string& device, bool profile = false)
        : backend(open_cuda(device, profile)) {
        TensorPlan plan;
        plan.add(one, DType::F32, 1, 64);
        plan.add(sum, DType::F32, 1, 64);
        memory = plan.allocate(*backend);
        const std::vector<float> ones(64, 1.0f);
        backend->write(one, ones.data());
    }
    void add_once() { backend->run(Add{sum, sum, one}); }
    float value() {
        float value;
        backend->read(sum.col_range(0, 1), &value);
        return value;
    }

    std::unique_ptr<Backend> backend;
    Tensor one, sum;
    Buffer memory;
};

template <class Action>
std::string error_of(const Action& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(CudaCode, RunsOnLaterDevicesOfItsGeneration) {
    EXPECT_TRUE(cuda::runs_on("80-real", 8, 0));
    EXPECT_TRUE(cuda::runs_on("80-real", 8, 9));
    EXPECT_FALSE(cuda::runs_on("86-real", 8, 0));
    EXPECT_FALSE(cuda::runs_on("80-real", 9, 0));
    EXPECT_FALSE(cuda::runs_on("80-real", 7, 5));
    EXPECT_FALSE(cuda::runs_on("100-real", 12, 0));
}

TEST(CudaCode, OfADriverRunsOnAllLaterDevices) {
    for (const char* built : {"80", "80-virtual"}) {
        EXPECT_TRUE(cuda::runs_on(built, 8, 0)) << built;
        EXPECT_TRUE(cuda::runs_on(built, 12, 0)) << built;
        EXPECT_FALSE(cuda::runs_on(built, 7, 5)) << built;
    }
    EXPECT_TRUE(cuda::runs_on("75-real,80-real,90", 12, 1));
    EXPECT_FALSE(cuda::runs_on("90a-real", 10, 0));
    EXPECT_TRUE(cuda::runs_on("90a-real", 9, 0));
    EXPECT_FALSE(cuda::runs_on("", 9, 0));
    EXPECT_TRUE(cuda::runs_on("native", 9, 0));
}

// The build for the execution model has "80-real,90".
TEST_F(CudaMachine, ListsADeviceWithoutCodeAsAProblem) {
    simt::set_gpus({{7, 5}, {8, 6}, {9, 0}, {12, 0}});
    const std::vector<Capabilities> devices = cuda_capabilities();
    ASSERT_EQ(devices.size(), 4u);
    EXPECT_NE(devices[0].problem.find("no code for compute capability 7.5"), std::string::npos);
    for (size_t i : {1, 2, 3}) EXPECT_EQ(devices[i].problem, "") << i;
    EXPECT_NE(error_of([] { open_cuda("cuda:0"); }).find("cuda:0: this build has no code"),
              std::string::npos);
    EXPECT_EQ(simt::live().streams, 0);
    Sum ok("cuda:1");
}

// The list of architectures is right for most devices; the driver has the last word when one is
// opened.
TEST_F(CudaMachine, TellsOfCodeThatTheDriverRefuses) {
    simt::set_gpus({{.has_code = false}});
    EXPECT_NE(error_of([] { open_cuda("cuda:0"); }).find("no kernel image"), std::string::npos);
}

TEST_F(CudaMachine, ABrokenDeviceTakesNothingFromTheOthers) {
    simt::set_gpus({{.answers = false}, {}});
    const std::vector<Capabilities> devices = cuda_capabilities();
    ASSERT_EQ(devices.size(), 2u);
    EXPECT_NE(devices[0].problem, "");
    EXPECT_EQ(devices[1].problem, "");
    EXPECT_NE(error_of([] { open_cuda("cuda:0"); }), "");
    Sum ok("cuda:1");
}

TEST_F(CudaMachine, TwoDevicesInTurn) {
    simt::set_gpus({{}, {}});
    Sum first("cuda:0", true), second("cuda:1", true);
    for (int i = 0; i < 4; ++i)
        for (Sum* sum : {&first, &second}) {
            sum->add_once();
            sum->backend->replay(1, [&] { sum->add_once(); });
            const Buffer more = sum->backend->allocate(1000);
            const std::vector<float> ones(2 * 64, 1.0f);
            const WeightBlock block{DType::F32, DType::F16, ones.data(), 2, 64};
            sum->backend->upload_weight({&block, 1});
            EXPECT_GT(sum->backend->memory_probe(1)->read(), 0);
        }
    EXPECT_EQ(first.value(), 8);
    EXPECT_EQ(second.value(), 8);
    EXPECT_EQ(first.backend->op_times().front().op, "add");
    second.backend->sync();
}

// A new thread starts with the first device.
TEST_F(CudaMachine, AnotherThreadUsesTheSecondDevice) {
    simt::set_gpus({{}, {}});
    auto sum = std::make_unique<Sum>("cuda:1");
    std::thread([&] {
        for (int i = 0; i < 3; ++i) sum->backend->replay(1, [&] { sum->add_once(); });
        sum->add_once();
        EXPECT_EQ(sum->value(), 4);
    }).join();
    std::thread([&] { sum.reset(); }).join();
}

TEST_F(CudaMachine, AFailedLaunchIsToldByItsName) {
    Sum sum("cuda:0");
    simt::fail_launch(1, cudaErrorInvalidConfiguration);
    EXPECT_EQ(error_of([&] {
                  for (int i = 0; i < 3; ++i) sum.add_once();
              }),
              "");
    EXPECT_EQ(error_of([&] { sum.value(); }), "cuda: add: invalid configuration argument");
    EXPECT_EQ(sum.value(), 1);  // nothing ran behind it, and nothing is left of it
}

TEST_F(CudaMachine, AFailedLaunchInACaptureIsToldByItsName) {
    Sum sum("cuda:0");
    const auto pass = [&] {
        sum.add_once(), sum.backend->run(Copy{sum.one, sum.one}), sum.add_once();
    };
    sum.backend->replay(1, pass);
    simt::fail_launch(1, cudaErrorInvalidConfiguration);
    EXPECT_EQ(error_of([&] { sum.backend->replay(1, pass); }),
              "cuda: copy: invalid configuration argument");
    EXPECT_EQ(simt::live().graphs + simt::live().executables, 0);
    sum.backend->replay(1, pass);
    EXPECT_EQ(sum.value(), 4);
}

// A failure before a capture is not the capture's, and not lost.
TEST_F(CudaMachine, AFailureBeforeACaptureIsToldByIt) {
    Sum sum("cuda:0");
    sum.backend->replay(1, [&] { sum.add_once(); });
    simt::fail_launch(0, cudaErrorInvalidConfiguration);
    sum.backend->run(Copy{sum.one, sum.one});
    EXPECT_EQ(error_of([&] { sum.backend->replay(1, [&] { sum.add_once(); }); }),
              "cuda: copy: invalid configuration argument");
    EXPECT_EQ(sum.value(), 1);
}

// The first message that a lost device gives says where to look; so do all later ones.
TEST_F(CudaMachine, ALostDeviceSaysSinceWhen) {
    Sum sum("cuda:0", true);
    sum.add_once();
    EXPECT_EQ(sum.value(), 1);
    sum.backend->run(Copy{sum.one, sum.one});
    simt::fail_run(0);
    EXPECT_EQ(error_of([&] { sum.add_once(); }), "");
    const std::string want =
        "an illegal memory access was encountered (since the last wait: copy and what followed)";
    EXPECT_NE(error_of([&] { sum.value(); }).find(want), std::string::npos);
    EXPECT_EQ(error_of([&] { sum.add_once(); }), "");  // ops do not throw, not even where timed
    EXPECT_NE(error_of([&] { sum.backend->sync(); }), "");
    EXPECT_NE(error_of([&] { sum.backend->write(sum.one, std::vector<float>(64).data()); }), "");
}

TEST_F(CudaMachine, KernelsAreFirstLaunchedOutsideOfACapture) {
    Sum sum("cuda:0");
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(error_of([&] {
                      sum.backend->replay(1, [&] {
                          sum.backend->run(Copy{sum.sum, sum.one}), sum.add_once();
                      });
                  }),
                  "");
    EXPECT_EQ(sum.value(), 2);
}

// A write of any size takes what the host's memory held when it was called.
TEST_F(CudaMachine, WriteTakesTheHostsDataAtOnce) {
    const auto backend = open_cuda("cuda:0");
    for (int cols : {1, 64, 70000, 200000})
        for (bool with_gaps : {false, true}) {
            const int rows = 3, stride = with_gaps ? cols + 64 : cols;
            TensorPlan plan;
            Tensor whole;
            plan.add(whole, DType::F32, rows, stride);
            const Buffer memory = plan.allocate(*backend);
            const Tensor part = whole.col_range(0, cols);
            std::vector<float> values(size_t(rows * cols));
            for (int round = 0; round < 3; ++round) {
                for (size_t i = 0; i < values.size(); ++i) values[i] = float(i + size_t(round));
                const std::vector<float> want = values;
                backend->write(part, values.data());
                values.assign(values.size(), -1);
                if (round == 1) continue;  // and again, before anybody waits
                std::vector<float> got(values.size());
                backend->read(part, got.data());
                EXPECT_EQ(got, want) << cols << " " << with_gaps;
                if (!with_gaps) continue;
                std::vector<float> gap(size_t(rows) * 64, 1.0f);
                backend->read(whole.col_range(cols, 64), gap.data());
                EXPECT_EQ(gap, std::vector<float>(size_t(rows) * 64)) << cols;
            }
        }
}

TEST_F(CudaMachine, WhatWasNotReservedIsRefused) {
    const auto backend = open_cuda("cuda:0");
    backend->reserve({.rows = 1, .widest = 64, .context = 64, .heads = 1});
    const std::vector<float> ones(128, 1.0f);
    const WeightBlock block{DType::F32, DType::F16, ones.data(), 1, 128};
    const auto weight = backend->upload_weight({&block, 1});
    TensorPlan plan;
    Tensor x, out;
    plan.add(x, DType::F32, 1, 128);
    plan.add(out, DType::F32, 1, 1);
    const Buffer memory = plan.allocate(*backend);
    backend->run(Matmul{out, x, *weight});
    EXPECT_EQ(error_of([&] { backend->sync(); }),
              "cuda: matmul: wider activations than were reserved");
}

TEST_F(CudaMachine, AProbeLeavesHalfOfTheMemory) {
    simt::set_gpus({{.memory_bytes = size_t(1) << 20}});
    const auto backend = open_cuda("cuda:0");
    const auto probe = backend->memory_probe(size_t(4) << 30);
    EXPECT_EQ(probe->size_bytes(), size_t(1) << 19);
    EXPECT_GT(probe->read(), 0);
    EXPECT_GT(probe->copy(), 0);
    EXPECT_EQ(simt::live().events, 0);
}

}  // namespace
}  // namespace aerie
