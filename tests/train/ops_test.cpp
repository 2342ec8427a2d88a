// Every training op of a device in f32 against the same op of the CPU in f64, whose gradients
// gradients_test.cpp checks: odd shapes, matrices that are parts of larger ones, poisoned outputs.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/error.h"
#include "cpu/training/device.h"
#include "train/needs_blas.h"
#include "train/tested_device.h"

namespace aerie::test {
namespace {

constexpr double kPoison = std::numeric_limits<double>::quiet_NaN();
constexpr int kMargin = 3;

// The same matrix on both devices: columns kMargin ... of a wider one, whose other columns no op
// may write.
struct Both {
    Matrix tested, exact;
    Matrix wide_tested, wide_exact;

    Both row_range(int first, int count) const {
        return {tested.row_range(first, count), exact.row_range(first, count), wide_tested,
                wide_exact};
    }
    Both col_range(int first, int count) const {
        return {tested.col_range(first, count), exact.col_range(first, count), wide_tested,
                wide_exact};
    }
};

class TrainingOps : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        try {
            shared_ = open_tested_device();
        } catch (const Error& error) {
            reason_ = error.what();
        }
    }
    static void TearDownTestSuite() { shared_.reset(); }
    void SetUp() override {
        if (!shared_) GTEST_SKIP() << "SKIPPED: " << reason_;
    }

    TrainingDevice& tested() { return *shared_; }
    TrainingDevice& exact() { return *exact_; }

    Both matrix(int rows, int cols, const std::vector<double>& values) {
        const int stride = cols + 2 * kMargin;
        Both made;
        made.wide_tested = tested().allocate(rows, stride);
        made.wide_exact = exact().allocate(rows, stride);
        std::vector<double> wide(size_t(rows) * size_t(stride), 7);
        for (int r = 0; r < rows; ++r)
            for (int i = 0; i < cols; ++i)
                wide[size_t(r) * size_t(stride) + size_t(i + kMargin)] =
                    values[size_t(r) * size_t(cols) + size_t(i)];
        tested().write(made.wide_tested, std::span<const double>(wide));
        exact().write(made.wide_exact, std::span<const double>(wide));
        made.tested = made.wide_tested.col_range(kMargin, cols);
        made.exact = made.wide_exact.col_range(kMargin, cols);
        return made;
    }
    Both filled(int rows, int cols, double value) {
        return matrix(rows, cols, std::vector<double>(size_t(rows) * size_t(cols), value));
    }
    Both poisoned(int rows, int cols) { return filled(rows, cols, kPoison); }
    Both random(int rows, int cols, double spread = 1) {
        std::normal_distribution<double> normal(0, spread);
        std::vector<double> values(size_t(rows) * size_t(cols));
        for (double& value : values) value = double(float(normal(rng_)));
        return matrix(rows, cols, values);
    }
    // Rows that are distributions, of which one token in each has most of the mass.
    Both distributions(int rows, int cols) {
        std::vector<double> values;
        for (int r = 0; r < rows; ++r) {
            std::vector<double> row(static_cast<size_t>(cols));
            double sum = 0;
            for (double& p : row) sum += p = 1e-3 + double(rng_() % 1000) / 1000;
            row[rng_() % size_t(cols)] += sum;
            for (const double p : row) values.push_back(double(float(p / (2 * sum))));
        }
        return matrix(rows, cols, values);
    }
    std::vector<int> numbers(int count, int below) {
        std::vector<int> found(static_cast<size_t>(count));
        for (int& number : found) number = int(rng_() % unsigned(below));
        return found;
    }

    // Elements differ by at most `error` of the largest one; columns beside the matrix are as they
    // were.
    void expect_equal(const Both& m, double error, const std::string& what) {
        std::vector<double> got(m.tested.size()), want(m.exact.size());
        tested().read(m.tested, got);
        exact().read(m.exact, want);
        double largest = 0;
        for (const double value : want) largest = std::max(largest, std::abs(value));
        ASSERT_TRUE(std::isfinite(largest)) << what;
        for (size_t i = 0; i < got.size(); ++i)
            ASSERT_LE(std::abs(got[i] - want[i]), error * largest)
                << what << ": row " << i / size_t(m.tested.cols) << ", column "
                << i % size_t(m.tested.cols) << " is " << got[i] << ", not " << want[i];
        std::vector<double> wide(m.wide_tested.size());
        tested().read(m.wide_tested, wide);
        const size_t stride = size_t(m.wide_tested.cols);
        for (size_t i = 0; i < wide.size(); ++i)
            if (i % stride < kMargin || i % stride >= stride - kMargin) {
                ASSERT_EQ(wide[i], 7) << what << ": beside row " << i / stride;
            }
    }

    // Attention of `depths` depths over sequences of these lengths, forward and back.
    void expect_attention(const std::vector<int>& lengths, int depths, int heads, int kv_heads,
                          int head_dim);

    std::unique_ptr<TrainingDevice> exact_ = cpu::open_training(cpu::Precision::f64);
    std::mt19937 rng_{5};

  private:
    static inline std::unique_ptr<TrainingDevice> shared_;
    static inline std::string reason_;
};

TEST_F(TrainingOps, MemoryIsZeroedAndKept) {
    const Matrix m = tested().allocate(3, 5);
    std::vector<double> values(15, 1);
    tested().read(m, values);
    EXPECT_EQ(values, std::vector<double>(15, 0.0));
    tested().fill(m.row_range(1, 1), 2.5);
    const std::vector<float> given = {1, -2};
    tested().write(m.row_range(2, 1).col_range(1, 2), std::span<const float>(given));
    tested().read(m, values);
    EXPECT_EQ(values,
              (std::vector<double>{0, 0, 0, 0, 0, 2.5, 2.5, 2.5, 2.5, 2.5, 0, 1, -2, 0, 0}));
}

TEST_F(TrainingOps, Products) {
    const int sizes[][3] = {{1, 1, 1},    {1, 7, 300}, {5, 33, 17},  {16, 16, 16},   {31, 64, 65},
                            {64, 31, 64}, {65, 1, 3},  {100, 90, 5}, {130, 129, 127}};
    for (const auto& [m, n, k] : sizes)
        for (const Product form : {Product::a_bt, Product::a_b, Product::at_b})
            for (const bool accumulate : {false, true}) {
                const Both a = form == Product::at_b ? random(k, m) : random(m, k);
                const Both b = form == Product::a_bt ? random(n, k) : random(k, n);
                const Both out = accumulate ? random(m, n) : poisoned(m, n);
                tested().multiply(form, out.tested, a.tested, b.tested, accumulate);
                exact().multiply(form, out.exact, a.exact, b.exact, accumulate);
                expect_equal(out, 1e-5,
                             "form " + std::to_string(int(form)) + " of " + std::to_string(m) +
                                 " x " + std::to_string(n) + " x " + std::to_string(k));
            }
}

// Among them are more rows than a grid of Vulkan or CUDA may have.
TEST_F(TrainingOps, SumsAndBiases) {
    for (const auto& [rows, cols] :
         {std::pair(1, 1), std::pair(3, 70), std::pair(300, 33), std::pair(70000, 2)}) {
        const Both x = random(rows, cols), y = random(rows, cols), bias = random(1, cols);
        tested().add(x.tested, y.tested);
        exact().add(x.exact, y.exact);
        expect_equal(x, 1e-6, "add");
        tested().add_bias(x.tested, bias.tested);
        exact().add_bias(x.exact, bias.exact);
        expect_equal(x, 1e-6, "add_bias");
        tested().sum_rows(bias.tested, x.tested);
        exact().sum_rows(bias.exact, x.exact);
        expect_equal(bias, 1e-5, "sum_rows");
        EXPECT_NEAR(tested().sum_of_squares(x.tested), exact().sum_of_squares(x.exact),
                    1e-5 * exact().sum_of_squares(x.exact));
    }
}

TEST_F(TrainingOps, GathersAndScatters) {
    const Both table = random(50, 37), out = poisoned(20, 37);
    const std::vector<int> rows = numbers(20, 50);
    tested().gather(out.tested, table.tested, rows);
    exact().gather(out.exact, table.exact, rows);
    expect_equal(out, 0, "gather");
    std::vector<int> places = {49, 0, 17, 3, 40};
    const Both part = out.row_range(2, 5);
    tested().scatter(table.tested, part.tested, places);
    exact().scatter(table.exact, part.exact, places);
    expect_equal(table, 0, "scatter");
    tested().gather(out.row_range(0, 0).tested, table.tested, {});
    tested().scatter(table.tested, out.row_range(0, 0).tested, {});
    expect_equal(table, 0, "no rows");
}

TEST_F(TrainingOps, Norms) {
    for (const auto& [rows, cols] : {std::pair(1, 2), std::pair(5, 70), std::pair(70, 300)}) {
        const Both x = random(rows, cols), weight = random(1, cols), out = poisoned(rows, cols);
        const Both inverse = poisoned(rows, 1);
        tested().rms_norm(out.tested, inverse.tested, x.tested, weight.tested, 1e-5);
        exact().rms_norm(out.exact, inverse.exact, x.exact, weight.exact, 1e-5);
        expect_equal(out, 1e-5, "rms_norm");
        expect_equal(inverse, 1e-5, "inverse");
        const Both dout = random(rows, cols), dx = random(rows, cols), dweight = random(1, cols);
        tested().rms_norm_back(dx.tested, dweight.tested, dout.tested, inverse.tested, x.tested,
                               weight.tested);
        exact().rms_norm_back(dx.exact, dweight.exact, dout.exact, inverse.exact, x.exact,
                              weight.exact);
        expect_equal(dx, 1e-5, "gradient of x");
        expect_equal(dweight, 1e-5, "gradient of the weight");
        tested().rms_norm_back({}, dweight.tested, dout.tested, inverse.tested, x.tested,
                               weight.tested);
        exact().rms_norm_back({}, dweight.exact, dout.exact, inverse.exact, x.exact, weight.exact);
        expect_equal(dweight, 1e-5, "gradient of the weight alone");
    }
}

TEST_F(TrainingOps, Rotation) {
    for (const int head_dim : {2, 24, 64}) {
        const Both x = random(9, 3 * head_dim);
        const std::vector<int> positions = {0, 1, 2, 77, 500, 1999, 2047, 3, 3};
        for (const bool back : {false, true}) {
            tested().rotate(x.tested, positions, head_dim, 10000, back);
            exact().rotate(x.exact, positions, head_dim, 10000, back);
            expect_equal(x, 1e-5, back ? "back" : "forward");
        }
    }
}

void TrainingOps::expect_attention(const std::vector<int>& lengths, int depths, int heads,
                                   int kv_heads, int head_dim) {
    std::vector<int> first = {0};
    for (const int length : lengths) first.push_back(first.back() + length);
    const int rows = first.back(), width = heads * head_dim, kv_width = kv_heads * head_dim;
    const TrainedAttention shape{heads, kv_heads, head_dim, first};
    const Both q = random(rows, width), out = poisoned(rows, width), lse = poisoned(rows, heads);
    const Both dout = random(rows, width), dq = poisoned(rows, width);
    std::vector<Both> keys, values, dkeys, dvalues;
    for (int depth = 0; depth < depths; ++depth)
        for (std::vector<Both>* of : {&keys, &values, &dkeys, &dvalues})
            of->push_back(random(rows, kv_width));
    const auto all_of = [](const std::vector<Both>& both, Matrix Both::*device) {
        std::vector<Matrix> all;
        for (const Both& m : both) all.push_back(m.*device);
        return all;
    };
    tested().attend(out.tested, lse.tested, q.tested, all_of(keys, &Both::tested),
                    all_of(values, &Both::tested), shape);
    exact().attend(out.exact, lse.exact, q.exact, all_of(keys, &Both::exact),
                   all_of(values, &Both::exact), shape);
    expect_equal(out, 1e-5, "out");
    expect_equal(lse, 1e-5, "lse");
    tested().attend_back(dq.tested, all_of(dkeys, &Both::tested), all_of(dvalues, &Both::tested),
                         dout.tested, out.tested, lse.tested, q.tested, all_of(keys, &Both::tested),
                         all_of(values, &Both::tested), shape);
    exact().attend_back(dq.exact, all_of(dkeys, &Both::exact), all_of(dvalues, &Both::exact),
                        dout.exact, out.exact, lse.exact, q.exact, all_of(keys, &Both::exact),
                        all_of(values, &Both::exact), shape);
    expect_equal(dq, 1e-4, "gradient of q");
    for (int depth = 0; depth < depths; ++depth) {
        expect_equal(dkeys[size_t(depth)], 1e-4, "gradient of keys " + std::to_string(depth));
        expect_equal(dvalues[size_t(depth)], 1e-4, "gradient of values " + std::to_string(depth));
    }
}

TEST_F(TrainingOps, Attention) {
    expect_attention({1}, 1, 1, 1, 2);
    expect_attention({1, 5, 64, 65}, 1, 4, 2, 16);
    expect_attention({33, 2, 40}, 3, 3, 3, 24);
    expect_attention({70, 7}, 5, 6, 2, 64);
    expect_attention({150}, 2, 2, 1, 128);
}

TEST_F(TrainingOps, Gates) {
    for (const auto& [rows, cols] : {std::pair(1, 1), std::pair(7, 100), std::pair(130, 65)}) {
        const Both gate_up = random(rows, 2 * cols, 3), out = poisoned(rows, cols);
        tested().gate(out.tested, gate_up.tested);
        exact().gate(out.exact, gate_up.exact);
        expect_equal(out, 1e-5, "gate");
        const Both dout = random(rows, cols), dgate_up = poisoned(rows, 2 * cols);
        tested().gate_back(dgate_up.tested, dout.tested, gate_up.tested);
        exact().gate_back(dgate_up.exact, dout.exact, gate_up.exact);
        expect_equal(dgate_up, 1e-5, "gradient");
    }
}

TEST_F(TrainingOps, CrossEntropies) {
    for (const auto& [rows, cols] : {std::pair(1, 1), std::pair(9, 1000), std::pair(70, 257)}) {
        const Both logits = random(rows, cols, 4), targets = distributions(rows + 2, cols);
        std::vector<int> target_rows = numbers(rows, rows + 2);
        for (size_t r = 1; r < target_rows.size(); r += 3) target_rows[r] = -1;
        const CrossEntropy got =
            tested().cross_entropy(logits.tested, targets.tested, target_rows, 0.25);
        const CrossEntropy want =
            exact().cross_entropy(logits.exact, targets.exact, target_rows, 0.25);
        EXPECT_NEAR(got.loss, want.loss, 1e-5 * std::abs(want.loss) + 1e-6);
        EXPECT_EQ(got.rows, want.rows);
        EXPECT_EQ(got.hits, want.hits);
        if (cols > 1) expect_equal(logits, 1e-5, "gradient");
    }
}

TEST_F(TrainingOps, SmoothL1) {
    for (const auto& [rows, cols] : {std::pair(1, 1), std::pair(9, 300), std::pair(70, 65)}) {
        const Both x = random(rows, cols, 2), goals = random(rows, cols), dx = poisoned(rows, cols);
        std::vector<int> target_rows = numbers(rows, rows);
        for (size_t r = 1; r < target_rows.size(); r += 4) target_rows[r] = -1;
        const double got = tested().smooth_l1(dx.tested, x.tested, goals.tested, target_rows, 0.5);
        const double want = exact().smooth_l1(dx.exact, x.exact, goals.exact, target_rows, 0.5);
        EXPECT_NEAR(got, want, 1e-5 * want);
        expect_equal(dx, 1e-5, "gradient");
    }
}

TEST_F(TrainingOps, Updates) {
    const Both weight = random(31, 70), gradient = random(31, 70), mean = filled(31, 70, 0),
               square = filled(31, 70, 0);
    const AdamW rule{.rate = 1e-2, .decay = 0.1};
    for (int step = 1; step <= 3; ++step) {
        tested().update(weight.tested, gradient.tested, mean.tested, square.tested, rule, step,
                        0.5);
        exact().update(weight.exact, gradient.exact, mean.exact, square.exact, rule, step, 0.5);
    }
    expect_equal(weight, 1e-5, "weight");
    expect_equal(mean, 1e-5, "mean");
    expect_equal(square, 1e-5, "square");
}

// A shape that does not fit is a message, not a write beyond the end.
TEST_F(TrainingOps, RefusesShapesThatDoNotFit) {
    const Matrix m = tested().allocate(4, 6), other = tested().allocate(5, 6);
    EXPECT_THROW(tested().add(m, other), Error);
    EXPECT_THROW(tested().multiply(Product::a_b, m, m, other, false), Error);
    EXPECT_THROW(tested().gather(m, other, std::vector<int>{0, 1, 2, 5}), Error);
    EXPECT_THROW(tested().scatter(m, m, std::vector<int>{0, 1, 2, -1}), Error);
    EXPECT_THROW(tested().cross_entropy(m, m, std::vector<int>{0, 1, 2, 4}, 1), Error);
    EXPECT_THROW(tested().smooth_l1(m, m, m, std::vector<int>{0, 1, 2, 4}, 1), Error);
    EXPECT_THROW(tested().write(m, std::span<const float>(std::vector<float>(23))), Error);
}

}  // namespace
}  // namespace aerie::test
