// The shared arithmetic against doubles.
#include "core/arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace aerie {
namespace {

// The largest relative error of f over random x, with log(x) uniform in [log(low), log(high)].
template <class F, class Exact>
double worst(F f, Exact exact, double low, double high) {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> exponent(std::log(low), std::log(high));
    double worst = 0;
    for (int i = 0; i < 1000000; ++i) {
        const float x = float(std::exp(exponent(random)));
        worst = std::max(worst, std::fabs(double(f(x)) / exact(double(x)) - 1));
    }
    return worst;
}

TEST(Arithmetic, ReciprocalAndInverseSquareRootAreWithinAFewUnits) {
    const auto inverse = [](double x) { return 1 / x; };
    const auto root = [](double x) { return 1 / std::sqrt(x); };
    EXPECT_LE(worst(reciprocal, inverse, 0x1p-125, 0x1p125), 0x1p-22);
    EXPECT_LE(worst(inverse_sqrt, root, 0x1p-125, 0x1p125), 3 * 0x1p-23);
}

TEST(Arithmetic, ExpIsWithinTwoUnitsAndClamped) {
    std::mt19937 random(2);
    std::uniform_real_distribution<float> within(-87.3f, 88.0f);
    for (int i = 0; i < 1000000; ++i) {
        const float x = within(random);
        ASSERT_LE(std::fabs(double(exp_of(x)) / std::exp(double(x)) - 1), 2 * 0x1p-23) << x;
    }
    EXPECT_EQ(exp_of(-88), 0);
    EXPECT_EQ(exp_of(-std::numeric_limits<float>::infinity()), 0);
    EXPECT_EQ(exp_of(1000), exp_of(88));
    EXPECT_TRUE(std::isnan(exp_of(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Arithmetic, SiluMatchesDoublesEverywhere) {
    for (float x = -100; x < 100; x += 0.01f) {
        const double exact = double(x) / (1 + std::exp(-double(x)));
        ASSERT_LE(std::fabs(double(silu(x)) - exact), 1e-6 * std::fabs(exact) + 1e-30) << x;
    }
    EXPECT_TRUE(std::isnan(silu(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace aerie
