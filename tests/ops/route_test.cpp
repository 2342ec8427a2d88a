// route: the best experts of every row with their weights, and the places of all rows by expert.
#include <cmath>
#include <limits>

#include "ops/routed_rows.h"
#include "reference/experts.h"

namespace aerie {

using namespace reference;

namespace {

struct Shape {
    int experts, k;
};
constexpr Shape kShapes[] = {{1, 1}, {2, 1},  {3, 3},  {8, 2},   {8, 3},    {16, 4},
                             {7, 5}, {60, 6}, {64, 7}, {128, 8}, {1024, 8}, {40, 32}};

class RouteTest : public RoutingTest {
  protected:
    void expect_routed(const Matrix& logits, int k, bool normalised) {
        const RoutedRows routed = route(upload(logits), k, normalised);
        const Chosen want = choose_experts(logits, k, normalised);
        const Indices ids = download_indices(routed.ids);
        ASSERT_EQ(ids.data, want.ids.data);
        const Matrix weights = download(routed.weights);
        for (size_t i = 0; i < weights.data.size(); ++i) {
            const double exact = want.weights.data[i];
            if (std::isnan(exact)) {
                ASSERT_TRUE(std::isnan(weights.data[i]));
                continue;
            }
            ASSERT_NEAR(weights.data[i], exact, 2e-6 * exact + 1e-30);
        }
        ASSERT_EQ(download_indices(routed.order).data, order_of(ids, logits.cols).data);
        std::vector<ExpertTile> tiles = tiles_of(ids, logits.cols), got = download_tiles(routed);
        ASSERT_LE(tiles.size(), got.size());
        tiles.resize(got.size());
        for (size_t t = 0; t < tiles.size(); ++t) {
            ASSERT_EQ(got[t].count, tiles[t].count) << "tile " << t;
            if (tiles[t].count == 0) continue;
            ASSERT_EQ(got[t].expert, tiles[t].expert) << "tile " << t;
            ASSERT_EQ(got[t].first, tiles[t].first) << "tile " << t;
        }
    }
};

TEST_P(RouteTest, ChoosesTheBest) {
    for (const Shape& shape : kShapes)
        for (int rows : {1, 2, 7, 64, 65, 130})
            for (bool normalised : {false, true}) {
                if (rows * shape.k > 130 * 8) continue;
                SCOPED_TRACE(std::to_string(shape.k) + " of " + std::to_string(shape.experts) +
                             ", " + std::to_string(rows) + " rows");
                expect_routed(random_matrix(rows, shape.experts, 1, 3), shape.k, normalised);
            }
}

// With few different logits most are equal, and the choice among equal ones is defined.
TEST_P(RouteTest, TiesGoToTheLowestExpert) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kValues[] = {0.0f, -0.0f, 1.5f, -2.0f, -kInfinity, 1e-40f};
    for (const Shape& shape : kShapes) {
        Matrix logits = random_matrix(17, shape.experts, 2);
        for (float& x : logits.data) x = kValues[unsigned(std::abs(x) * 1000) % 6];
        for (int r = 0; r < logits.rows; ++r) logits[r][r % shape.experts] = 1.5f;
        expect_routed(logits, shape.k, true);
    }
}

// Experts with NaN logits are chosen last, and weights are NaN where the reference's are.
TEST_P(RouteTest, NaNIsNoNumber) {
    const float nan = std::nanf("");
    for (const Shape& shape : kShapes) {
        if (shape.experts < 3) continue;
        Matrix logits = random_matrix(5, shape.experts, 3);
        for (int r = 1; r < 4; ++r)
            for (int e = 0; e < shape.experts; e += r) logits[r][e] = nan;
        expect_routed(logits, shape.k, false);
    }
}

// All rows go to the same experts, or each row to its own.
TEST_P(RouteTest, ExpertsOfAnyNumberOfRows) {
    for (int rows : {63, 64, 65, 128, 129, 130}) {
        Matrix same(rows, 8), apart(rows, 128);
        for (int r = 0; r < rows; ++r) {
            same[r][3] = 2;
            same[r][6] = 1;
            for (int i = 0; i < 2; ++i) apart[r][(r * 2 + i) % 128] = 5;
        }
        expect_routed(same, 2, true);
        expect_routed(apart, 2, true);
    }
}

TEST_P(RouteTest, RowsDoNotDependOnTheirNeighbours) {
    for (const Shape& shape : kShapes) {
        const Matrix all = random_matrix(64, shape.experts, 4, 3);
        const RoutedRows together = route(upload(all), shape.k);
        const Indices ids = download_indices(together.ids);
        const Matrix weights = download(together.weights);
        for (int r : {0, 1, 31, 63}) {
            Matrix one(1, shape.experts);
            std::copy_n(all[r], shape.experts, one[0]);
            const RoutedRows alone = route(upload(one), shape.k);
            ASSERT_TRUE(same_bits(download(alone.weights)[0], weights[r], shape.k));
            const Indices its = download_indices(alone.ids);
            ASSERT_TRUE(std::equal(its.data.begin(), its.data.end(), ids[r]));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, RouteTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
