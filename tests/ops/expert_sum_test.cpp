// expert_sum: a row's weighted products are added in the order of the choices, then their sum is
// added to `out`.
#include "ops/device_test.h"

namespace aerie {

using namespace reference;

namespace {

class ExpertSumTest : public DeviceTest {};

TEST_P(ExpertSumTest, AddsInTheOrderOfChoices) {
    for (int k : {1, 2, 3, 8, 32})
        for (int cols : {1, 16, 33, 130})
            for (int rows : {1, 2, 31, 65}) {
                SCOPED_TRACE(std::to_string(k) + " choices, " + std::to_string(rows) + " rows of " +
                             std::to_string(cols));
                const Matrix before = random_matrix(rows, cols, 1),
                             weights = random_matrix(rows, k, 2);
                const Matrix x = random_matrix(rows * k, cols, 3);
                const Array added = upload(before), alone = poisoned(rows, cols);
                const Array from = upload(x), shares = upload(weights);
                backend_->run(ExpertSum{added, from, shares, Accumulate::yes});
                backend_->run(ExpertSum{alone, from, shares, Accumulate::no});
                const Matrix got = download(added), got_alone = download(alone);
                for (int r = 0; r < rows; ++r)
                    for (int c = 0; c < cols; ++c) {
                        volatile float sum = weights[r][0] * x[r * k][c];
                        for (int i = 1; i < k; ++i) {
                            volatile float product = weights[r][i] * x[r * k + i][c];
                            sum = sum + product;
                        }
                        ASSERT_EQ(got[r][c], before[r][c] + sum) << r << ", " << c;
                        ASSERT_EQ(got_alone[r][c], sum) << r << ", " << c;
                    }
            }
}

INSTANTIATE_TEST_SUITE_P(Devices, ExpertSumTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
