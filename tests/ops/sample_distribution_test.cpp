// sample: many draws over positions follow probs (G-test), at several filter settings.
#include <cmath>

#include "ops/device_test.h"
#include "reference/choices.h"

namespace aerie {

using namespace reference;

namespace {

// P(chi-squared with `freedom` degrees > x): Wilson and Hilferty's normal approximation.
double chi_squared_tail(double x, double freedom) {
    const double spread = 2 / (9 * freedom);
    const double z = (std::cbrt(x / freedom) - (1 - spread)) / std::sqrt(spread);
    return 0.5 * std::erfc(z / std::sqrt(2.0));
}

class SampleDistributionTest : public DeviceTest {
  protected:
    std::vector<int> draw(const Matrix& logits, const Filters& filters, uint64_t seed, int draws) {
        constexpr int kRows = 64;
        const int vocab = logits.cols;
        Matrix repeated(kRows, vocab);
        std::vector<Row> rows(kRows);
        for (int r = 0; r < kRows; ++r) {
            std::copy_n(logits[0], vocab, repeated[r]);
            rows[size_t(r)].position = r;
        }
        const Array logit_array = upload(repeated);
        Array noise_array = poisoned(kRows, vocab), ids = poisoned_indices(1, kRows);
        Choice choice;
        choice.logits = logit_array;
        choice.rules = {upload(std::vector{RowChoice(filters, {})})};
        choice.rules.include(filters);
        const Rows block = upload(rows);
        std::vector<int> counts(size_t(vocab), 0);
        for (int first = 0; first < draws; first += kRows) {
            Indices positions(1, kRows);
            for (int r = 0; r < kRows; ++r) positions[0][r] = first + r;
            backend_->run(Noise{noise_array, seed, upload(positions)});
            backend_->run(Sample{ids, choice, block, noise_array});
            for (int32_t id : download_indices(ids).data) ++counts[size_t(id)];
        }
        return counts;
    }
};

TEST_P(SampleDistributionTest, FollowsProbs) {
    const int draws = int((1u << 14) / GetParam().step) * 64;
    const Matrix logits = random_matrix(1, 50, 3, 2);
    for (const Filters& filters :
         {Filters{.temperature = 1}, Filters{.temperature = 0.6f, .top_k = 12},
          Filters{.temperature = 1.5f, .top_p = 0.9f}, Filters{.temperature = 1, .min_p = 0.05f}}) {
        const std::vector<double> p = reference::probs(logits.data, filters);
        const std::vector<int> counts = draw(logits, filters, 2024, draws);
        double g = 0, rare = 0, rare_count = 0;
        int cells = 0;
        for (size_t i = 0; i < p.size(); ++i) {
            EXPECT_TRUE(p[i] > 0 || counts[i] == 0) << i;
            if (p[i] * draws < 10) {
                rare += p[i] * draws;
                rare_count += counts[i];
                continue;
            }
            ++cells;
            if (counts[i] > 0) g += 2 * counts[i] * std::log(counts[i] / (p[i] * draws));
        }
        if (rare > 0 && rare_count > 0) {
            g += 2 * rare_count * std::log(rare_count / rare);
            ++cells;
        }
        EXPECT_GE(chi_squared_tail(g, cells - 1), 1e-6) << "G = " << g << " of " << cells;
        EXPECT_GE(1 - chi_squared_tail(g, cells - 1), 1e-6) << "too good";
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, SampleDistributionTest, testing::ValuesIn(devices()),
                         device_name);

}  // namespace
}  // namespace aerie
