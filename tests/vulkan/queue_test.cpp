// How work is cut into submissions.
#include "vulkan/queue.h"

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "vulkan/backend.h"
#include "vulkan/device.h"
#include "vulkan/vulkan_backend.h"

namespace aerie::vulkan {
namespace {

constexpr int kRows = 24, kInner = 256, kOutputs = 640;
constexpr double kWork = double(kRows) * kInner * kOutputs;

class Submissions : public testing::Test {
  protected:
    void SetUp() override {
        if (vulkan_capabilities().empty()) GTEST_SKIP() << "SKIPPED: no Vulkan device here";
    }

    // Some products with at most so much work at once; counts what they took.
    std::vector<float> multiply(double submission_work, bool replayed) {
        DeviceChoices choices;
        choices.submission_work = submission_work;
        const auto backend = open_vulkan("vulkan:0", choices);
        std::vector<float> values(size_t(kOutputs) * kInner), out(size_t(kRows) * kOutputs);
        for (size_t i = 0; i < values.size(); ++i) values[i] = float(i * 2654435761u % 997) - 498;
        const WeightBlock block{DType::F32, DType::F32, values.data(), kOutputs, kInner};
        const auto weight = backend->upload_weight({&block, 1});
        const Buffer from = backend->allocate(size_t(kRows) * kInner * 4);
        const Buffer to = backend->allocate(out.size() * 4);
        const Tensor x = dense(from.get(), DType::F32, kRows, kInner);
        const Tensor product = dense(to.get(), DType::F32, kRows, kOutputs);
        backend->write(x, values.data());
        backend->sync();
        const CommandCounts before = backend->command_counts();
        const auto product_of_x = [&] { backend->run(Matmul{product, x, *weight}); };
        if (replayed)
            backend->replay(1, product_of_x);
        else
            product_of_x();
        backend->read(product, out.data());
        const CommandCounts after = backend->command_counts();
        submissions_ = after.submissions - before.submissions;
        dispatches_ = after.dispatches - before.dispatches;
        return out;
    }

    long submissions_ = 0, dispatches_ = 0;
};

TEST_F(Submissions, CutAnOpThatTakesLong) {
    const std::vector<float> whole = multiply(2 * kWork, false);
    EXPECT_EQ(submissions_, 1);
    EXPECT_EQ(dispatches_, 1);
    for (int pieces : {3, 11, 1000}) {
        EXPECT_EQ(multiply(kWork / pieces, false), whole) << pieces;
        const int strips = kOutputs / 32;  // what one workgroup does is not cut
        EXPECT_GE(dispatches_, std::min(pieces, strips)) << pieces;
        EXPECT_LE(dispatches_, strips) << pieces;
        // One is closed by the piece that goes beyond the limit.
        EXPECT_GE(submissions_, dispatches_ / 2) << pieces;
    }
}

TEST_F(Submissions, CutARecordingThatTakesLong) {
    const std::vector<float> whole = multiply(2 * kWork, true);
    EXPECT_EQ(submissions_, 1);
    EXPECT_EQ(multiply(kWork / 2, true), whole);  // as it was recorded
    EXPECT_EQ(dispatches_, 1);
    EXPECT_EQ(multiply(kWork / 7, true), whole);
    EXPECT_GE(dispatches_, 7);
}

TEST(LearnedWork, GoesUpStepByStepAndComesDown) {
    constexpr double kTenth = 0.1;
    EXPECT_DOUBLE_EQ(learned_work(1e9, 1e9, kTenth), 1e9);
    EXPECT_DOUBLE_EQ(learned_work(1e9, 1e9, 2 * kTenth), 0.75e9);
    EXPECT_DOUBLE_EQ(learned_work(1e9, 1e9, kTenth / 2), 1.5e9);
    EXPECT_DOUBLE_EQ(learned_work(1e9, 1e9, 5e-6), 2e9);  // measured badly
    EXPECT_DOUBLE_EQ(learned_work(1e9, 1e8, 5e-6), 1e9);  // too short to tell
    // Far too high, so that no batch is long for it: one that takes a second tells all the same.
    double known = 1e14;
    for (int i = 0; i < 20; ++i) known = learned_work(known, 1e9, 1);
    EXPECT_LT(known, 2e8);
    EXPECT_GT(learned_work(2e8, 1, 100), 0);
}

PFN_vkGetQueryPoolResults real_results;
uint64_t ticks_of_batch;

VkResult give_ticks(VkDevice device, VkQueryPool pool, uint32_t first, uint32_t count, size_t size,
                    void* data, VkDeviceSize stride, VkQueryResultFlags flags) {
    const VkResult result = real_results(device, pool, first, count, size, data, stride, flags);
    uint64_t* ticks = static_cast<uint64_t*>(data);
    ticks[0] = ~uint64_t(0) - 1;  // they begin anew
    ticks[1] = ticks[0] + ticks_of_batch;
    return result;
}

class Learning : public Submissions {
  protected:
    void open(DeviceChoices choices) {
        backend_ = open_vulkan("vulkan:0", choices);
        const std::vector<float> values(size_t(kOutputs) * kInner);
        const WeightBlock block{DType::F32, DType::F32, values.data(), kOutputs, kInner};
        weight_ = backend_->upload_weight({&block, 1});
        memory_ = backend_->allocate(size_t(kRows) * (kInner + kOutputs) * 4);
        backend_->sync();
    }
    double known() { return static_cast<VulkanBackend&>(*backend_).queue().submission_work(); }

    // More than half of what is given at once at first.
    void multiply_much() {
        const Tensor x = dense(memory_.get(), DType::F32, kRows, kInner);
        Tensor product = dense(memory_.get(), DType::F32, kRows, kOutputs);
        product.offset_bytes = size_t(kRows) * kInner * 4;
        for (int i = 0; i < 30; ++i) backend_->run(Matmul{product, x, *weight_});
    }

    std::unique_ptr<Backend> backend_;
    std::unique_ptr<Weight> weight_;
    Buffer memory_;
};

TEST_F(Learning, IsByTheClockOfTheDevice) {
    DeviceChoices choices;
    choices.pretend = [](Traits& traits) {
        traits.timestamp_bits = 36;
        traits.timestamp_seconds = 1e-9;
    };
    choices.patch = [](VolkDeviceTable& vk) {
        real_results = vk.vkGetQueryPoolResults;
        vk.vkGetQueryPoolResults = give_ticks;
    };
    ticks_of_batch = 5000;
    open(choices);
    const double first = known();
    multiply_much();
    backend_->sync();
    EXPECT_DOUBLE_EQ(known(), 2 * first);
    ticks_of_batch = 10'000'000'000;
    for (int i = 0; i < 8; ++i) {
        multiply_much();
        backend_->sync();
    }
    EXPECT_LT(known(), first / 8);
}

// The host was away while a batch ended, and cannot tell how long it took.
TEST_F(Learning, IsNotByWhatEndedUnseen) {
    static PFN_vkWaitForFences real_wait;
    static bool away;
    DeviceChoices choices;
    choices.pretend = [](Traits& traits) {
        traits.timestamp_bits = 0, traits.timestamp_seconds = 0;
    };
    choices.patch = [](VolkDeviceTable& vk) {
        real_wait = vk.vkWaitForFences;
        vk.vkGetFenceStatus = [](VkDevice device, VkFence fence) {
            return away ? real_wait(device, 1, &fence, VK_TRUE, ~uint64_t(0)) : VK_NOT_READY;
        };
    };
    away = true;
    open(choices);
    const double first = known();
    multiply_much();
    backend_->sync();
    EXPECT_EQ(known(), first);
    away = false;
    multiply_much();
    backend_->sync();
    EXPECT_NE(known(), first);
}

}  // namespace
}  // namespace aerie::vulkan
