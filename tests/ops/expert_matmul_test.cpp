// expert_matmul: each place has the bits that a matmul with its expert's own weight gives the row,
// whatever other rows go to that expert.
#include <algorithm>
#include <numeric>

#include "ops/routed_rows.h"
#include "reference/quantised.h"

namespace aerie {

using namespace reference;

namespace {

struct Shape {
    int inner, outputs, experts, k;
};
constexpr Shape kShapes[] = {{64, 48, 8, 2},  {96, 5, 3, 3},    {160, 33, 16, 4}, {7, 3, 5, 2},
                             {100, 17, 8, 1}, {1056, 40, 6, 2}, {32, 16, 128, 8}, {256, 65, 4, 3}};
constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0};

// Experts' matrices in one weight, in stacks of one type each, and each matrix as a plain weight.
struct ExpertWeights {
    ExpertWeights(Backend& be, const Shape& shape, const std::vector<DType>& types, unsigned seed)
        : values(random_matrix(int(types.size()) * shape.experts * shape.outputs, shape.inner, seed,
                               0.1f)) {
        std::vector<WeightBlock> blocks;
        for (size_t stack = 0; stack < types.size(); ++stack)
            for (int e = 0; e < shape.experts; ++e) {
                const int row = int(blocks.size()) * shape.outputs;
                blocks.push_back(
                    {DType::F32, types[stack], values[row], shape.outputs, shape.inner});
            }
        all = be.upload_weight(blocks, WeightUse::experts);
        for (const WeightBlock& block : blocks)
            alone.push_back(be.upload_weight(std::span(&block, 1)));
    }

    Matrix values;
    std::unique_ptr<Weight> all;
    std::vector<std::unique_ptr<Weight>> alone;
};

class ExpertMatmulTest : public RoutingTest {
  protected:
    Array activations(const Matrix& x, const Weight& weight) {
        const bool quantised = backend_->activation_type(weight) == DType::I8G32;
        return upload(x, quantised ? DType::I8G32 : DType::F32);
    }
    Matrix multiply(const ExpertWeights& weights, const Matrix& x, const RoutedRows& routed,
                    int stacks) {
        const Routing routing = routed.routing();
        const Array out = poisoned(routing.places(), stacks * weights.all->matrix_rows);
        backend_->run(ExpertMatmul{out, activations(x, *weights.all), *weights.all, routing});
        return download(out);
    }
    // x has a row for each routed row, or a row for each place.
    void expect_products(const ExpertWeights& weights, const Matrix& x, const RoutedRows& routed) {
        const int n = weights.all->matrix_rows, k = routed.routing().chosen();
        const int stacks = weights.all->rows / (experts_ * n);
        const Indices ids = download_indices(routed.ids);
        const Matrix got = multiply(weights, x, routed, stacks);
        std::vector<Matrix> want(weights.alone.size());
        for (size_t i = 0; i < want.size(); ++i) {
            // Experts that no row chose are skipped.
            if (std::ranges::find(ids.data, int(i) % experts_) == ids.data.end()) continue;
            const Weight& weight = *weights.alone[i];
            const Array out = poisoned(x.rows, n);
            backend_->run(Matmul{out, activations(x, weight), weight});
            want[i] = download(out);
        }
        for (int place = 0; place < got.rows; ++place)
            for (int stack = 0; stack < stacks; ++stack) {
                const Matrix& of_expert = want[size_t(stack * experts_ + ids.data[size_t(place)])];
                const float* row = of_expert[x.rows == ids.rows ? place / k : place];
                ASSERT_TRUE(same_bits(got[place] + stack * n, row, n))
                    << "place " << place << ", stack " << stack;
            }
    }
    RoutedRows routed(const Shape& shape, int rows, unsigned seed) {
        experts_ = shape.experts;
        return route(upload(random_matrix(rows, shape.experts, seed, 2)), shape.k);
    }

  private:
    int experts_ = 0;
};

TEST_P(ExpertMatmulTest, HasTheBitsOfTheExpertsAlone) {
    for (DType type : kTypes)
        for (const Shape& shape : kShapes) {
            if (is_quantised(type) && shape.inner % kGroup != 0) continue;
            const ExpertWeights weights(*backend_, shape, {type, type}, 1);
            for (int rows : {1, 2, 9, 40, 130}) {
                if (rows > 40 && shape.experts > 8) continue;
                // Each expert's own matmul takes time, so very many experts are tried with the
                // fewest rows and the most only.
                if (shape.experts > 16 && rows > 1 && rows < 40) continue;
                SCOPED_TRACE(std::string(name(type)) + " " + std::to_string(shape.inner) + " -> " +
                             std::to_string(shape.outputs) + ", " + std::to_string(rows) + " rows");
                const RoutedRows places = routed(shape, rows, 2);
                expect_products(weights, random_matrix(rows, shape.inner, 3), places);
                if (HasFatalFailure()) return;
            }
        }
}

// x has a row for each place, as the products of gate and up have. The types cover each way to read
// rows.
TEST_P(ExpertMatmulTest, TakesARowOfEachPlace) {
    for (DType type : {DType::F32, DType::F16, DType::Q8_0})
        for (const Shape& shape : {kShapes[0], kShapes[2], kShapes[6]}) {
            const ExpertWeights weights(*backend_, shape, {type}, 4);
            for (int rows : {1, 5, 33, 70}) {
                if (shape.experts > 16 && rows > 5) continue;  // as above
                SCOPED_TRACE(std::string(name(type)) + ", " + std::to_string(rows) + " rows");
                const RoutedRows places = routed(shape, rows, 5);
                expect_products(weights, random_matrix(rows * shape.k, shape.inner, 6), places);
                if (HasFatalFailure()) return;
            }
        }
}

TEST_P(ExpertMatmulTest, StacksOfSeveralTypes) {
    for (const auto& types : {std::vector{DType::Q8_0, DType::Q4_0},
                              {DType::Q4_0, DType::F16},
                              {DType::BF16, DType::F32},
                              {DType::F16, DType::Q8_0, DType::Q4_0}})
        for (int rows : {1, 12, 66}) {
            const Shape shape = kShapes[2];
            const ExpertWeights weights(*backend_, shape, types, 7);
            SCOPED_TRACE(std::to_string(types.size()) + " types, " + std::to_string(rows));
            expect_products(weights, random_matrix(rows, shape.inner, 8), routed(shape, rows, 9));
            if (HasFatalFailure()) return;
        }
}

// Blocks as a file holds them.
TEST_P(ExpertMatmulTest, BlocksOfAFile) {
    for (DType type : {DType::Q4_K, DType::Q5_1, DType::Q6_K}) {
        if (!backend_->stores(type)) continue;
        SCOPED_TRACE(name(type));
        const int cols = 512, experts = 4, outputs = 17;
        const Blocks file = random_blocks(type, experts * outputs, cols, 16);
        std::vector<WeightBlock> blocks;
        std::vector<std::unique_ptr<Weight>> apart;
        for (int e = 0; e < experts; ++e) {
            blocks.push_back({type, type, file.row(e * outputs), outputs, cols});
            apart.push_back(backend_->upload_weight({&blocks.back(), 1}));
        }
        const auto all = backend_->upload_weight(blocks, WeightUse::experts);
        const Array x = upload(random_matrix(20, cols, 10), DType::I8G32);
        const RoutedRows places = route(upload(random_matrix(20, experts, 11)), 2);
        const Array out = poisoned(40, outputs);
        backend_->run(ExpertMatmul{out, x, *all, places.routing()});
        const Matrix got = download(out);
        const Indices ids = download_indices(places.ids);
        for (int e = 0; e < experts; ++e) {
            const Array own = poisoned(20, outputs);
            backend_->run(Matmul{own, x, *apart[size_t(e)]});
            const Matrix want = download(own);
            for (int place = 0; place < 40; ++place) {
                if (ids.data[size_t(place)] != e) continue;
                ASSERT_TRUE(same_bits(got[place], want[place / 2], outputs)) << place;
            }
        }
    }
}

// A row's products are the same alone and among others in any order.
TEST_P(ExpertMatmulTest, RowsDoNotDependOnTheirNeighbours) {
    const Shape shape{96, 33, 8, 3};
    const Matrix x = random_matrix(64, shape.inner, 12);
    const Matrix logits = random_matrix(64, shape.experts, 13);
    for (DType type : kTypes) {
        const ExpertWeights weights(*backend_, shape, {type, type}, 14);
        const auto products = [&](const std::vector<int>& rows) {
            Matrix of_x(int(rows.size()), x.cols), of_logits(of_x.rows, logits.cols);
            for (int i = 0; i < of_x.rows; ++i) {
                std::copy_n(x[rows[size_t(i)]], x.cols, of_x[i]);
                std::copy_n(logits[rows[size_t(i)]], logits.cols, of_logits[i]);
            }
            return multiply(weights, of_x, route(upload(of_logits), shape.k), 2);
        };
        std::vector<int> rows(64);
        std::iota(rows.begin(), rows.end(), 0);
        const Matrix want = products(rows);
        std::mt19937 random(15);
        for (int count = 1; count <= 64; count += count < 12 ? 1 : 13) {
            std::shuffle(rows.begin(), rows.end(), random);
            const Matrix got = products({rows.begin(), rows.begin() + count});
            for (int i = 0; i < count; ++i)
                ASSERT_TRUE(same_bits(got[i * shape.k], want[rows[size_t(i)] * shape.k],
                                      shape.k * want.cols))
                    << name(type) << ", row " << i << " of " << count;
        }
    }
}

// A recording routes rows by their new logits the next time.
TEST_P(ExpertMatmulTest, ReplaysChooseAnew) {
    const Shape shape{64, 40, 16, 4};
    const ExpertWeights weights(*backend_, shape, {DType::Q8_0, DType::F16}, 16);
    const Matrix x = random_matrix(21, shape.inner, 17);
    const Array from = activations(x, *weights.all), logits = poisoned(21, shape.experts);
    const Array out = poisoned(21 * shape.k, 2 * shape.outputs);
    const RoutedRows places = poisoned_routing(21, shape.k, shape.experts);
    const uint64_t key = new_key();
    for (unsigned seed = 20; seed < 25; ++seed) {
        Matrix values = random_matrix(21, shape.experts, seed);
        if (seed == 22)  // all rows to one expert, and to some others
            for (int r = 0; r < 21; ++r) values[r][5] = 9;
        backend_->write(logits.tensor, values.data.data());
        backend_->replay(key, [&] {
            backend_->run(Route{places.routing(), logits, true});
            backend_->run(ExpertMatmul{out, from, *weights.all, places.routing()});
        });
        const RoutedRows anew = route(upload(values), shape.k);
        ASSERT_TRUE(same_bits(download(out), multiply(weights, x, anew, 2))) << seed;
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, ExpertMatmulTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
