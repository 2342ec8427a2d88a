// Median, mean and extremes of timings.
#include "measure/timings.h"

#include <gtest/gtest.h>

namespace aerie {
namespace {

TEST(Timings, HaveMedianMeanAndSpread) {
    Timings samples;
    for (double value : {5.0, 1.0, 3.0}) samples.add(value);
    EXPECT_EQ(samples.median(), 3);
    EXPECT_EQ(samples.mean(), 3);
    samples.add(11);
    EXPECT_EQ(samples.median(), 4) << "of the two in the middle";
    EXPECT_EQ(samples.mean(), 5);
    EXPECT_EQ(samples.min(), 1);
    EXPECT_EQ(samples.max(), 11);
    Timings both;
    both.add(samples);
    both.add(samples);
    EXPECT_EQ(both.runs(), 8);
    EXPECT_EQ(both.median(), 4);
}

TEST(Timings, OfNothingAreZero) {
    const Timings none;
    for (double value : {none.median(), none.mean(), none.min(), none.max()}) EXPECT_EQ(value, 0);
    EXPECT_EQ(none.runs(), 0);
}

}  // namespace
}  // namespace aerie
