// How work is cut into submissions.
#include "vulkan/queue.h"

#include <gtest/gtest.h>

#include "backend/ops.h"
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
        const WeightBlock block{DType::F32, values.data(), kOutputs, kInner};
        const auto weight = backend->upload_weight({&block, 1}, DType::F32);
        const Buffer from = backend->allocate(size_t(kRows) * kInner * 4);
        const Buffer to = backend->allocate(out.size() * 4);
        const Tensor x = dense(from.get(), DType::F32, kRows, kInner);
        const Tensor product = dense(to.get(), DType::F32, kRows, kOutputs);
        backend->write(x, values.data());
        backend->sync();
        const CommandCounts before = backend->command_counts();
        const auto product_of_x = [&] { matmul(*backend, product, x, *weight); };
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

}  // namespace
}  // namespace aerie::vulkan
