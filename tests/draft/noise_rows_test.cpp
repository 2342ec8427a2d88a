// Noise rows of a cycle's positions: they have the scalar definition's bits, and each is made once.
#include "draft/trees/noise_rows.h"

#include <gtest/gtest.h>

#include "backend/observed.h"
#include "backend/registry.h"
#include "backend/tensor_plan.h"
#include "core/rng.h"

namespace aerie::test {
namespace {

constexpr int kDepths = 6, kVocab = 100;

// Counts the rows that the noise op makes.
class Counting final : public ObservedBackend {
  public:
    using ObservedBackend::ObservedBackend;
    int made = 0;

  protected:
    using ObservedBackend::do_run;
    void do_run(const Noise& op, Label label) override {
        made += op.out.rows;
        ObservedBackend::do_run(op, label);
    }
};

class NoiseRowsTest : public testing::Test {
  protected:
    NoiseRowsTest() {
        TensorPlan plan;
        Tensor noise, positions, copy;
        plan.add(noise, DType::F32, kDepths, kVocab);
        plan.add(positions, DType::I32, 1, kDepths);
        plan.add(copy, DType::F32, 1, kVocab);
        memory_ = plan.allocate(be_);
        noise_ = {noise, positions, copy};
    }

    void expect_rows(int count, uint64_t seed, int first_position) {
        const Tensor rows = noise_.rows(be_, count);
        ASSERT_EQ(rows.rows, count);
        std::vector<float> values(size_t(count * kVocab));
        be_.read(rows, values.data());
        for (int d = 0; d < count; ++d)
            for (int token = 0; token < kVocab; ++token)
                ASSERT_EQ(values[size_t(d * kVocab + token)],
                          gumbel(seed, first_position + d, token))
                    << "row " << d << ", token " << token;
    }

    Counting be_{open_device("cpu", {1})};
    NoiseRows noise_;
    Buffer memory_;
};

TEST_F(NoiseRowsTest, AreTheNoiseOfTheirPositions) {
    noise_.begin(42, 1000);
    expect_rows(kDepths, 42, 1000);
}

TEST_F(NoiseRowsTest, AreMadeOnceAndAsFarAsAskedFor) {
    noise_.begin(7, 50);
    expect_rows(2, 7, 50);
    EXPECT_EQ(be_.made, 2);
    expect_rows(1, 7, 50);
    EXPECT_EQ(be_.made, 2);
    expect_rows(5, 7, 50);
    EXPECT_EQ(be_.made, 5);
}

TEST_F(NoiseRowsTest, OfANewCycleAreOthers) {
    noise_.begin(7, 50);
    expect_rows(3, 7, 50);
    noise_.begin(7, 51);
    expect_rows(3, 7, 51);
    noise_.begin(8, 51);
    expect_rows(3, 8, 51);
    EXPECT_EQ(be_.made, 9);
}

}  // namespace
}  // namespace aerie::test
