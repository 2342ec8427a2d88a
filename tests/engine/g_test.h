// Tests whether counts are draws from a distribution.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace aerie::test {

// Upper tail of the chi-square distribution, by Wilson and Hilferty.
inline double chi_square_tail(double statistic, double freedom) {
    const double scale = 2 / (9 * freedom);
    const double z = (std::cbrt(statistic / freedom) - (1 - scale)) / std::sqrt(scale);
    return 0.5 * std::erfc(z / std::sqrt(2.0));
}

// p-value of counts against probabilities.
inline double g_test(const std::vector<int>& counts, const std::vector<double>& truth, int runs) {
    double statistic = 0, pooled_count = 0, pooled_truth = 0;
    int cells = 0;
    const auto add = [&](double count, double expected) {
        if (count > 0) statistic += 2 * count * std::log(count / expected);
        ++cells;
    };
    for (size_t i = 0; i < counts.size(); ++i) {
        if (truth[i] == 0) {
            EXPECT_EQ(counts[i], 0) << "an impossible text was put out";
        }
        if (truth[i] * runs >= 5) {
            add(counts[i], truth[i] * runs);
        } else {
            pooled_count += counts[i];
            pooled_truth += truth[i] * runs;
        }
    }
    if (pooled_truth > 0) add(pooled_count, pooled_truth);
    return chi_square_tail(statistic, cells - 1);
}

}  // namespace aerie::test
