// Q8_0 and Q4_0 weights and I8G32 activations: against doubles on the values that they stand for,
// and with one order of operations for every number of rows.
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/device_test.h"
#include "reference/layers.h"
#include "reference/quantised.h"

namespace aerie {

using namespace reference;

namespace {

struct Shape {
    int inner, outputs;
};
constexpr Shape kShapes[] = {{256, 40}, {32, 1},    {704, 17},  {96, 16},
                             {544, 33}, {2048, 15}, {5632, 48}, {1024, 64}};
constexpr DType kTypes[] = {DType::Q8_0, DType::Q4_0};

class QuantisedTest : public DeviceTest {
  protected:
    Matrix multiply(const Matrix& x, const Weight& w) {
        Array out = poisoned(x.rows, w.rows);
        backend_->run(Matmul{out, upload(x, DType::I8G32), w});
        return download(out);
    }
    // Uploads blocks as a file holds them.
    template <class Block>
    std::unique_ptr<Weight> upload_blocks(const std::vector<Block>& blocks, DType type, int cols,
                                          std::initializer_list<int> parts) {
        std::vector<WeightBlock> source;
        const Block* next = blocks.data();
        for (int rows : parts) {
            source.push_back({type, type, next, rows, cols});
            next += rows * (cols / kGroup);
        }
        return backend_->upload_weight(source);
    }
};

bool same_groups(const std::vector<BlockI8G32>& a, const std::vector<BlockI8G32>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
}

TEST_P(QuantisedTest, MatmulMatchesDoubles) {
    for (DType type : kTypes)
        for (const Shape& shape : kShapes)
            for (int rows : {1, 2, 3, 4, 5, 7, 8, 9, 16, 60, 61, 64, 130}) {
                const Matrix weight = random_matrix(shape.outputs, shape.inner, 1, 0.05f);
                const Matrix x = random_matrix(rows, shape.inner, 2);
                const Matrix got = multiply(x, *upload_weight(weight, type));
                const Exact want =
                    reference::matmul(rounded(x, DType::I8G32), rounded(weight, type));
                EXPECT_LE(nmse(got, want), 1e-12)
                    << name(type) << " " << shape.inner << " -> " << shape.outputs << ", " << rows;
            }
}

TEST_P(QuantisedTest, MatmulRowsDoNotDependOnTheirNeighbours) {
    for (DType type : kTypes)
        for (const Shape& shape : {Shape{704, 17}, Shape{2080, 33}}) {
            const auto weight = upload_weight(random_matrix(shape.outputs, shape.inner, 3), type);
            expect_rows_to_stand_alone(random_matrix(64, shape.inner, 4), shape.outputs,
                                       std::string(name(type)) + " " + std::to_string(shape.inner),
                                       [&](const Matrix& x) { return multiply(x, *weight); });
        }
}

// The sum has one order on every device: its bits agree, not only its value.
TEST_P(QuantisedTest, MatmulAddsPartsUpAsDefined) {
    for (DType type : kTypes)
        for (int inner : {96, 1024, 1056, 2048, 2080, 3104}) {
            const Matrix weight = random_matrix(33, inner, 20, 0.05f);
            const Matrix x = random_matrix(61, inner, 21);
            const Blocks blocks = packed_blocks(weight, type);
            const Matrix want = quantised_matmul(x, blocks);
            const Matrix in_one = quantised_matmul(x, blocks, inner);
            EXPECT_EQ(same_bits(want, in_one), inner <= kSumPart + kGroup);  // one group is no sum
            for (int outputs : {1, 17, 33}) {
                Matrix some(outputs, inner);
                std::copy_n(weight.data.begin(), some.data.size(), some.data.begin());
                const auto device = upload_weight(some, type);
                for (int rows : {1, 3, 5, 7, 11, 19, 33, 61}) {
                    Matrix few(rows, inner);
                    std::copy_n(x.data.begin(), few.data.size(), few.data.begin());
                    const Matrix got = multiply(few, *device);
                    for (int r = 0; r < rows; ++r)
                        ASSERT_TRUE(same_bits(got[r], want[r], outputs))
                            << name(type) << " " << inner << " -> " << outputs << ", row " << r
                            << " of " << rows;
                }
            }
        }
}

// The extremes of both sides at once: sums of products must not overflow.
TEST_P(QuantisedTest, MatmulOfExtremes) {
    for (DType type : kTypes)
        for (float sign : {1.0f, -1.0f}) {
            Matrix weight(16, 512, -1.0f), x(5, 512, sign);  // Q4_0 reaches -8 but only +7
            EXPECT_LE(nmse(multiply(x, *upload_weight(weight, type)),
                           reference::matmul(x, rounded(weight, type))),
                      1e-12);
        }
}

TEST_P(QuantisedTest, MatmulAddsBiasAndAccumulates) {
    const Matrix weight = random_matrix(19, 128, 5), bias = random_matrix(1, 19, 6);
    for (DType type : kTypes)
        for (int rows : {1, 3, 9}) {
            const Matrix x = random_matrix(rows, 128, 7), before = random_matrix(rows, 19, 8);
            Exact want = reference::matmul(rounded(x, DType::I8G32), rounded(weight, type));
            for (int r = 0; r < rows; ++r)
                for (int n = 0; n < 19; ++n)
                    want[r][n] += double(bias[0][n]) + double(before[r][n]);
            Array out = upload(before);
            const Array bias_array = upload(bias);
            backend_->run(Matmul{out, upload(x, DType::I8G32), *upload_weight(weight, type),
                                 Accumulate::yes, bias_array});
            EXPECT_LE(nmse(download(out), want), 1e-12);
        }
}

TEST_P(QuantisedTest, WeightsComeAsBlocksToo) {
    const Matrix weight = random_matrix(37, 96, 9), x = random_matrix(3, 96, 10);
    const auto q8 = packed_groups(weight, pack_q8_0);
    const auto q4 = packed_groups(weight, pack_q4_0);
    const Matrix want8 = multiply(x, *upload_weight(weight, DType::Q8_0));
    EXPECT_TRUE(same_bits(multiply(x, *upload_blocks(q8, DType::Q8_0, 96, {37})), want8));
    EXPECT_TRUE(same_bits(multiply(x, *upload_blocks(q8, DType::Q8_0, 96, {5, 16, 1, 15})), want8));
    const Matrix want4 = multiply(x, *upload_weight(weight, DType::Q4_0));
    EXPECT_TRUE(same_bits(multiply(x, *upload_blocks(q4, DType::Q4_0, 96, {20, 17})), want4));
}

// The device packs floats as the scalar definition does, whatever their values.
TEST_P(QuantisedTest, OddWeightsArePackedByTheDefinition) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (float deviation : {1.0f, 1e-5f, 1e-7f, 1e-30f, 1e6f, 1e30f}) {
        Matrix weight = random_matrix(20, 96, 19, deviation);
        const float odd[] = {std::nanf(""), kInfinity, -kInfinity, 0.0f, -0.0f};
        for (int i = 0; i < 5; ++i) weight[i][7 * i] = odd[i];
        std::fill_n(weight[6], 32, 0.0f);
        weight[7][1] = -weight[7][0];
        for (DType type : kTypes) {
            const auto device = upload_weight(weight, type);
            const Matrix want = rounded(weight, type);
            std::vector<Row> rows(20);
            for (int r = 0; r < 20; ++r) rows[size_t(r)].token = r;
            Array out = poisoned(20, 96);
            backend_->run(Embed{out, *device, upload(rows)});
            EXPECT_TRUE(same_bits(download(out), want)) << name(type) << " " << deviation;
        }
    }
}

TEST_P(QuantisedTest, EmbedUnpacksRows) {
    const Matrix table = random_matrix(50, 64, 11);
    for (DType type : kTypes) {
        const auto weight = upload_weight(table, type);
        std::vector<Row> rows(3);
        rows[0].token = 49;
        rows[1].token = 16;
        rows[2].slot = -1;
        Array out = poisoned(3, 64);
        backend_->run(Embed{out, *weight, upload(rows)});
        const Matrix got = download(out), want = rounded(table, type);
        EXPECT_TRUE(same_bits(got[0], want[49], 64));
        EXPECT_TRUE(same_bits(got[1], want[16], 64));
        for (int i = 0; i < 64; ++i) EXPECT_EQ(got[2][i], 0);
    }
}

TEST_P(QuantisedTest, ActivationsHaveTheBitsOfTheScalarDefinition) {
    for (float deviation : {1.0f, 1e-20f, 1e-31f, 1e-40f, 1e30f}) {
        const Matrix x = random_matrix(7, 320, 12, deviation);
        Array out = poisoned_activations(7, 320);
        backend_->run(Copy{out, upload(x)});
        EXPECT_TRUE(same_groups(download_activations(out), packed_groups(x, pack_i8g32)))
            << deviation;
    }
}

TEST_P(QuantisedTest, ActivationsThatAreNoNumbersStaySo) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (float bad : {std::nanf(""), kInfinity, -kInfinity}) {
        Matrix x = random_matrix(1, 96, 13);
        x[0][40] = bad;
        Array out = poisoned_activations(1, 96);
        backend_->run(Copy{out, upload(x)});
        const auto groups = download_activations(out);
        EXPECT_FALSE(std::isnan(groups[0].scale) || std::isnan(groups[2].scale));
        EXPECT_TRUE(std::isnan(groups[1].scale));
        const auto weight = upload_weight(random_matrix(20, 96, 14), DType::Q8_0);
        for (float value : multiply(x, *weight).data) EXPECT_TRUE(std::isnan(value));
    }
}

// An op's I8G32 output is its f32 output, quantised.
TEST_P(QuantisedTest, OpsWriteActivations) {
    const auto check = [&](int rows, int cols, const auto& op) {
        Array floats = poisoned(rows, cols), groups = poisoned_activations(rows, cols);
        op(floats.tensor);
        op(groups.tensor);
        EXPECT_TRUE(
            same_groups(download_activations(groups), packed_groups(download(floats), pack_i8g32)));
    };
    const Array x = upload(random_matrix(9, 704, 15)), norm = upload(random_matrix(1, 704, 16));
    check(9, 704, [&](Tensor out) { backend_->run(RmsNorm{out, x, norm, 1e-5f}); });
    check(9, 352, [&](Tensor out) { backend_->run(Gated{out, x, Activation::silu}); });

    for (const AttentionShape& shape : {AttentionShape{4, 2, 16}, AttentionShape{6, 2, 16},
                                        AttentionShape{8, 8, 32}, AttentionShape{32, 1, 64}}) {
        std::vector<Row> rows(40);
        for (int i = 0; i < 40; ++i) rows[size_t(i)] = {.position = i, .slot = i, .prefix = i};
        const int columns = shape.kv_heads * shape.head_dim;
        kept_.push_back(backend_->allocate(2 * dense_bytes(DType::F32, 64, columns)));
        const Tensor both = dense(kept_.back().get(), DType::F32, 128, columns);
        const Tensor k = both.row_range(0, 64), v = both.row_range(64, 64);
        const Array pages = upload(Indices(1, 1));
        const KvLayer kv{k, v, pages};
        const Array qkv = upload(random_matrix(40, shape.heads * shape.head_dim + 2 * columns, 17));
        const Array rope = upload(random_matrix(40, shape.head_dim, 18));
        const Rows block = upload(rows);
        backend_->run(RopeAppend{qkv, rope, block, shape, kv});
        check(40, shape.heads * shape.head_dim, [&](Tensor out) {
            backend_->run(Attention{out, qkv, block, shape, kv, shape.usual_scale()});
        });
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, QuantisedTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
