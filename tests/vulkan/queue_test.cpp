// Tests how work is cut into submissions.
#include "vulkan/queue.h"

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "core/error.h"
#include "vulkan/backend.h"
#include "vulkan/device.h"
#include "vulkan/test_device.h"
#include "vulkan/vulkan_backend.h"

namespace aerie::vulkan {
namespace {

constexpr int kRows = 24, kInner = 256, kOutputs = 640;
constexpr double kWork = double(kRows) * kInner * kOutputs;

class Submissions : public testing::Test {
  protected:
    void SetUp() override {
        if (!has_test_device()) GTEST_SKIP() << "SKIPPED: no Vulkan device here";
    }

    // Multiplies with at most so much work per submission; counts submissions and dispatches.
    std::vector<float> multiply(double submission_work, bool replayed) {
        DeviceChoices choices;
        choices.submission_work = submission_work;
        const auto backend = open_test_device(choices);
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
        const int strips = kOutputs / 32;  // a workgroup is not cut
        EXPECT_GE(dispatches_, std::min(pieces, strips)) << pieces;
        EXPECT_LE(dispatches_, strips) << pieces;
        // A submission is closed by the piece that goes beyond the limit.
        EXPECT_GE(submissions_, dispatches_ / 2) << pieces;
    }
}

TEST_F(Submissions, CutARecordingThatTakesLong) {
    const std::vector<float> whole = multiply(2 * kWork, true);
    EXPECT_EQ(submissions_, 1);
    EXPECT_EQ(multiply(kWork / 2, true), whole);  // submitted as it was recorded
    EXPECT_EQ(dispatches_, 1);
    EXPECT_EQ(multiply(kWork / 7, true), whole);
    EXPECT_GE(dispatches_, 7);
}

// A device with memory that the host does not see, or hardly reads.
class Transfers : public Submissions {
  protected:
    static std::unique_ptr<Backend> open(bool unified) {
        DeviceChoices choices;
        choices.allow_unified = unified;
        choices.pretend = [](Traits& traits) {
            for (uint32_t i = 0; i < traits.memory.memoryTypeCount; ++i)
                traits.memory.memoryTypes[i].propertyFlags &=
                    ~uint32_t(VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
        };
        return open_test_device(choices);
    }

    // Writes values behind a command that is still to be done, and reads them.
    static std::vector<uint16_t> there_and_back(Backend& backend, const Tensor& view,
                                                const std::vector<uint16_t>& values) {
        const Buffer other = backend.allocate(256);
        const Tensor x = dense(other.get(), DType::F32, 1, 64);
        std::vector<uint16_t> got(values.size());
        backend.run(Add{x, x, x});
        backend.write(view, values.data());
        backend.read(view, got.data());
        return got;
    }
};

std::vector<uint16_t> some_halves(size_t count) {
    std::vector<uint16_t> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = uint16_t(i * 40503u >> 3);
    return values;
}

// Rows that are longer than what the host copies at once.
TEST_F(Transfers, OfLongRows) {
    constexpr int kLong = (17 << 20) / 2 + 3, kGap = 5;
    const std::vector<uint16_t> values = some_halves(2 * size_t(kLong));
    for (const bool unified : {true, false}) {
        const auto backend = open(unified);
        const Buffer memory = backend->allocate(2 * 2 * size_t(kLong + kGap));
        Tensor view = dense(memory.get(), DType::F16, 2, kLong);
        EXPECT_EQ(there_and_back(*backend, view, values), values) << unified;
        view.row_stride += kGap;
        EXPECT_EQ(there_and_back(*backend, view, values), values) << unified;
    }
}

TEST_F(Transfers, OfRowsThatAreNoWholeWords) {
    constexpr int kRows = 3, kCols = 5, kStride = 7;
    const std::vector<uint16_t> values = some_halves(kRows * kCols), ones(kRows * kStride, 1);
    for (const bool unified : {true, false}) {
        const auto backend = open(unified);
        const Buffer memory = backend->allocate(256);
        const Tensor all = dense(memory.get(), DType::F16, kRows, kStride);
        std::vector<uint16_t> want = ones, got(ones.size());
        EXPECT_EQ(there_and_back(*backend, all, ones), ones);
        EXPECT_EQ(there_and_back(*backend, all.col_range(1, kCols), values), values) << unified;
        for (int i = 0; i < kRows * kCols; ++i)
            want[size_t(i / kCols * kStride + 1 + i % kCols)] = values[size_t(i)];
        backend->read(all, got.data());
        EXPECT_EQ(got, want) << "what lies beside them, unified: " << unified;
    }
}

// An exception of the caller amid a pass is no failure of the device.
TEST_F(Submissions, GoOnBehindAPassThatThrew) {
    const auto backend = open_test_device({});
    const Buffer memory = backend->allocate(512);
    const Tensor x = dense(memory.get(), DType::F32, 1, 64);
    Tensor sum = x;
    sum.offset_bytes = 256;
    const std::vector<float> ones(64, 1.0f);
    std::vector<float> got(64);
    backend->write(x, ones.data());
    for (int times = 0; times < 2; ++times)
        EXPECT_THROW(backend->replay(1,
                                     [&] {
                                         backend->run(Add{sum, x, x});
                                         throw Error("amid a pass");
                                     }),
                     Error);
    backend->replay(1, [&] { backend->run(Add{sum, x, x}); });
    backend->read(sum, got.data());
    EXPECT_EQ(got, std::vector<float>(64, 2.0f));
}

// A norm that was postponed for a matmul that never came has no effect on later matmuls.
TEST_F(Submissions, EndWithWhatNormsLeft) {
    constexpr int kCols = 256, kOutputs = 64, kMost = 8;
    std::vector<float> values(size_t(kOutputs) * kCols), ones(kCols, 1.0f);
    for (size_t i = 0; i < values.size(); ++i) values[i] = float(i * 2654435761u % 97) - 48;
    const WeightBlock block{DType::F32, DType::F32, values.data(), kOutputs, kCols};
    DeviceChoices choices;
    choices.split = 8;  // as GPUs have it, where a matmul does the norm
    const auto product = [&](int rows, bool norm_first) {
        const auto backend = open_test_device(choices);
        const auto weight = backend->upload_weight({&block, 1});
        const Buffer memory = backend->allocate(1 << 16), wide = backend->allocate(1 << 16);
        const Tensor x = dense(memory.get(), DType::F32, rows, kCols);
        const Tensor out = dense(wide.get(), DType::F32, rows, kOutputs);
        Tensor normal = x, scale = x;
        normal.offset_bytes = 1 << 14, scale.offset_bytes = 1 << 15;
        scale.rows = 1;
        backend->write(x, values.data());
        backend->write(scale, ones.data());
        if (norm_first)
            backend->run(RmsNorm{
                normal.row_range(0, 1), x.row_range(rows - 1, 1), scale, 1e-5f, {weight.get()}});
        backend->run(RmsNorm{normal, x, scale, 1e-5f, {weight.get()}});
        backend->run(Matmul{out, normal, *weight});
        std::vector<float> got(size_t(rows) * kOutputs);
        backend->read(out, got.data());
        return got;
    };
    for (const int rows : {2, kMost}) EXPECT_EQ(product(rows, true), product(rows, false)) << rows;
}

TEST(LearnedWork, GoesUpStepByStepAndComesDown) {
    constexpr double kTenth = 0.1;
    EXPECT_DOUBLE_EQ(learned_work(1e9, 1e9, kTenth), 1e9);
    EXPECT_DOUBLE_EQ(learned_work(1e9, 1e9, 2 * kTenth), 0.75e9);
    EXPECT_DOUBLE_EQ(learned_work(1e9, 1e9, kTenth / 2), 1.5e9);
    EXPECT_DOUBLE_EQ(learned_work(1e9, 1e9, 5e-6), 2e9);  // measured badly
    EXPECT_DOUBLE_EQ(learned_work(1e9, 1e8, 5e-6), 1e9);  // too short to tell
    // The limit is far too high, so that every batch is short for it: one that takes a second
    // counts all the same.
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
    ticks[0] = ~uint64_t(0) - 1;  // the counter wraps around
    ticks[1] = ticks[0] + ticks_of_batch;
    return result;
}

class Learning : public Submissions {
  protected:
    void open(DeviceChoices choices) {
        backend_ = open_test_device(choices);
        const std::vector<float> values(size_t(kOutputs) * kInner);
        const WeightBlock block{DType::F32, DType::F32, values.data(), kOutputs, kInner};
        weight_ = backend_->upload_weight({&block, 1});
        memory_ = backend_->allocate(size_t(kRows) * (kInner + kOutputs) * 4);
        backend_->sync();
    }
    double known() { return static_cast<VulkanBackend&>(*backend_).queue().submission_work(); }

    // More than half of the limit at first.
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
