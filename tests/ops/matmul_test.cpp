// matmul: every weight type against doubles, and one order of operations for every number of rows.
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/device_test.h"
#include "reference/layers.h"

namespace aerie {

using namespace reference;

namespace {

struct Shape {
    int inner, outputs;
};
constexpr Shape kShapes[] = {{256, 40}, {704, 17}, {1000, 9}, {7, 3}, {1, 1}, {513, 8}, {2048, 33}};

class MatmulTest : public DeviceTest {
  protected:
    Matrix multiply(const Matrix& x, const Weight& w) {
        Array out = poisoned(x.rows, w.rows);
        backend_->run(Matmul{out, upload(x), w});
        return download(out);
    }
};

TEST_P(MatmulTest, MatchesDoubles) {
    for (DType type : {DType::F32, DType::F16, DType::BF16})
        for (const Shape& shape : kShapes)
            for (int rows : {1, 2, 3, 4, 5, 7, 8, 16, 60, 61, 64, 130}) {
                const Matrix weight = rounded(random_matrix(shape.outputs, shape.inner, 1), type);
                const Matrix x = random_matrix(rows, shape.inner, 2);
                const Matrix got = multiply(x, *upload_weight(weight, type));
                EXPECT_LE(nmse(got, reference::matmul(x, weight)), float_product_limit(shape.inner))
                    << name(type) << " " << shape.inner << " -> " << shape.outputs << ", " << rows;
            }
}

TEST_P(MatmulTest, RowsDoNotDependOnTheirNeighbours) {
    for (DType type : {DType::F32, DType::F16, DType::BF16})
        for (const Shape& shape : kShapes) {
            const auto weight = upload_weight(random_matrix(shape.outputs, shape.inner, 3), type);
            expect_rows_to_stand_alone(random_matrix(64, shape.inner, 4), shape.outputs,
                                       std::string(name(type)) + " " + std::to_string(shape.inner),
                                       [&](const Matrix& x) { return multiply(x, *weight); });
        }
}

// Rows as large and as small as floats can be, side by side; a row with an infinity or NaN has no
// finite product.
TEST_P(MatmulTest, RowsOfAnyMagnitude) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kScales[] = {1, 1e30f, 1e-30f, 70000, 1e-8f};
    const Matrix raw = random_matrix(37, 200, 12);
    for (DType type : {DType::F32, DType::F16, DType::BF16}) {
        const Matrix weight = rounded(raw, type);
        const auto device = upload_weight(weight, type);
        Matrix x = random_matrix(7, 200, 13);
        for (int r = 0; r < 5; ++r)
            for (int i = 0; i < 200; ++i) x[r][i] *= kScales[r];
        x[5][60] = kInfinity;
        x[6][60] = std::nanf("");
        const Matrix got = multiply(x, *device);
        const Exact want = reference::matmul(x, weight);
        for (int r = 0; r < 5; ++r) {
            double error = 0, size = 0;
            for (int n = 0; n < 37; ++n) {
                error += (got[r][n] - want[r][n]) * (got[r][n] - want[r][n]);
                size += want[r][n] * want[r][n];
            }
            EXPECT_LE(error, float_product_limit(200) * size) << name(type) << " " << kScales[r];
        }
        for (int n = 0; n < 37; ++n) {
            EXPECT_FALSE(std::isfinite(got[5][n])) << name(type);
            EXPECT_TRUE(std::isnan(got[6][n])) << name(type);
        }
    }
}

TEST_P(MatmulTest, AddsBiasAndAccumulates) {
    const Matrix weight = random_matrix(19, 100, 5), bias = random_matrix(1, 19, 6);
    for (int rows : {1, 3, 9}) {
        const Matrix x = random_matrix(rows, 100, 7), before = random_matrix(rows, 19, 8);
        Exact want = reference::matmul(x, weight);
        for (int r = 0; r < rows; ++r)
            for (int n = 0; n < 19; ++n) want[r][n] += double(bias[0][n]) + double(before[r][n]);
        Array out = upload(before);
        const Array bias_array = upload(bias);
        backend_->run(Matmul{out, upload(x), *upload_weight(weight, DType::F32), Accumulate::yes,
                             bias_array});
        EXPECT_LE(nmse(download(out), want), float_product_limit(100));
    }
}

// A backend may store gate and up, two blocks, in its own layout: their products come in order, and
// gated in one op they have the bits of a matmul and a swiglu.
TEST_P(MatmulTest, GatesWithTheBitsOfItsParts) {
    for (DType type : {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0})
        for (const Shape& shape : {Shape{100, 5}, {33, 37}, {64, 32}, {416, 96}, {1056, 32}}) {
            const bool quantised = is_quantised(type);
            if (quantised && shape.inner % kGroup != 0) continue;
            const Matrix values = random_matrix(2 * shape.outputs, shape.inner, 11);
            const auto whole = upload_weight(values, type);
            const WeightBlock blocks[] = {
                {DType::F32, type, values[0], shape.outputs, shape.inner},
                {DType::F32, type, values[shape.outputs], shape.outputs, shape.inner}};
            const auto paired = backend_->upload_weight(blocks, WeightUse::gated);
            for (int rows : {1, 2, 7, 8, 9, 16, 17, 31, 32, 33, 60, 64, 70}) {
                SCOPED_TRACE(std::string(name(type)) + " " + std::to_string(shape.outputs) + ", " +
                             std::to_string(rows) + " rows");
                Array x = upload(random_matrix(rows, shape.inner, 12));
                if (backend_->activation_type(*whole) == DType::I8G32) {
                    Array groups = poisoned_activations(rows, shape.inner);
                    backend_->run(Copy{groups, x});
                    x = std::move(groups);
                }
                Array products = poisoned(rows, 2 * shape.outputs);
                Array scratch = poisoned(rows, 2 * shape.outputs);
                backend_->run(Matmul{products, x, *whole});
                backend_->run(Matmul{scratch, x, *paired});
                ASSERT_TRUE(same_bits(download(products), download(scratch)));
                const auto gate = [&](Array want, Array got, const auto& get) {
                    backend_->run(Gated{want, products, Activation::silu});
                    backend_->run(MatmulGated{got, scratch, x, *paired, Activation::silu});
                    const auto a = get(want), b = get(got);
                    return std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
                };
                ASSERT_TRUE(gate(poisoned(rows, shape.outputs), poisoned(rows, shape.outputs),
                                 [&](const Array& t) { return download(t).data; }));
                if (shape.outputs % kGroup != 0) continue;
                ASSERT_TRUE(gate(poisoned_activations(rows, shape.outputs),
                                 poisoned_activations(rows, shape.outputs),
                                 [&](const Array& t) { return download_activations(t); }));
            }
        }
}

// The bias is added before the gate is applied.
TEST_P(MatmulTest, GatesWithABias) {
    for (DType type : {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0})
        for (const Shape& shape : {Shape{96, 37}, {416, 32}}) {
            const Matrix values = random_matrix(2 * shape.outputs, shape.inner, 11);
            const WeightBlock blocks[] = {
                {DType::F32, type, values[0], shape.outputs, shape.inner},
                {DType::F32, type, values[shape.outputs], shape.outputs, shape.inner}};
            const auto weight = backend_->upload_weight(blocks, WeightUse::gated);
            const Matrix added = random_matrix(1, 2 * shape.outputs, 16);
            const Array bias = upload(added);
            for (int rows : {1, 9, 64}) {
                SCOPED_TRACE(std::string(name(type)) + ", " + std::to_string(rows) + " rows");
                const bool quantised = backend_->activation_type(*weight) == DType::I8G32;
                const Array x = upload(random_matrix(rows, shape.inner, 12),
                                       quantised ? DType::I8G32 : DType::F32);
                const Array plain = poisoned(rows, 2 * shape.outputs);
                backend_->run(Matmul{plain, x, *weight});
                Matrix sums = download(plain);
                for (int r = 0; r < rows; ++r)
                    for (int c = 0; c < sums.cols; ++c) sums[r][c] += added[0][c];
                const Array want = poisoned(rows, shape.outputs),
                            got = poisoned(rows, shape.outputs);
                backend_->run(Gated{want, upload(sums), Activation::silu});
                const Array scratch = poisoned(rows, 2 * shape.outputs);
                backend_->run(MatmulGated{got, scratch, x, *weight, Activation::silu, bias});
                ASSERT_TRUE(same_bits(download(want), download(got)));
            }
        }
}

// A norm may leave its result in another form for the next matmul alone (Consumers in ops.h): the
// bits are the same.
TEST_P(MatmulTest, TakesWhatANormLeaves) {
    for (DType type : {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0})
        for (const Shape& shape : {Shape{33, 5}, {416, 32}, {1000, 9}, {7, 3}}) {
            const bool quantised = is_quantised(type);
            if (quantised && shape.inner % kGroup != 0) continue;
            const Matrix values = random_matrix(2 * shape.outputs, shape.inner, 13);
            const WeightBlock blocks[] = {
                {DType::F32, type, values[0], shape.outputs, shape.inner},
                {DType::F32, type, values[shape.outputs], shape.outputs, shape.inner}};
            const auto weight = backend_->upload_weight(blocks, WeightUse::gated);
            const Array scale = upload(random_matrix(1, shape.inner, 14));
            for (int rows : {1, 2, 7, 8, 9, 16, 17, 31, 32, 33, 60, 64, 70})
                for (float deviation : {1.0f, 1e-12f}) {
                    // A row's scale depends on no other row, so tiny values are tried alone and
                    // among many.
                    if (deviation < 1 && rows != 1 && rows != 33) continue;
                    SCOPED_TRACE(std::string(name(type)) + " " + std::to_string(shape.inner) +
                                 ", " + std::to_string(rows) + " rows");
                    const Array x = upload(random_matrix(rows, shape.inner, 15, deviation));
                    const auto activations = [&] {
                        return backend_->activation_type(*weight) == DType::I8G32
                                   ? poisoned_activations(rows, shape.inner)
                                   : poisoned(rows, shape.inner);
                    };
                    const Array plain = activations(), fused = activations();
                    Array want = poisoned(rows, 2 * shape.outputs);
                    Array got = poisoned(rows, 2 * shape.outputs);
                    backend_->run(RmsNorm{plain, x, scale, 1e-12f});
                    backend_->run(Matmul{want, plain, *weight});
                    backend_->run(RmsNorm{fused, x, scale, 1e-12f, {weight.get()}});
                    backend_->run(Matmul{got, fused, *weight});
                    ASSERT_TRUE(same_bits(download(want), download(got)));
                    Array gated = poisoned(rows, shape.outputs),
                          gated_too = poisoned(rows, shape.outputs);
                    backend_->run(Gated{gated, want, Activation::silu});
                    backend_->run(RmsNorm{fused, x, scale, 1e-12f, {weight.get()}});
                    backend_->run(MatmulGated{gated_too, got, fused, *weight, Activation::silu});
                    ASSERT_TRUE(same_bits(download(gated), download(gated_too)));
                }
        }
}

// The gated products of one row may be left in the same way, for the matmul that reads them.
TEST_P(MatmulTest, TakesWhatAGateLeaves) {
    for (DType type : {DType::F32, DType::F16, DType::BF16, DType::Q8_0})
        for (const Shape& shape : {Shape{64, 96}, {416, 1312}, {96, 4352}}) {
            const Matrix values = random_matrix(2 * shape.outputs, shape.inner, 13);
            const WeightBlock blocks[] = {
                {DType::F32, type, values[0], shape.outputs, shape.inner},
                {DType::F32, type, values[shape.outputs], shape.outputs, shape.inner}};
            const auto both = backend_->upload_weight(blocks, WeightUse::gated);
            for (DType below : {type, DType::F16}) {
                const auto down = upload_weight(random_matrix(40, shape.outputs, 17), below);
                const DType activations = backend_->activation_type(*down);
                for (int rows : {1, 2, 9}) {
                    SCOPED_TRACE(std::string(name(type)) + " by " + name(below) + " " +
                                 std::to_string(shape.outputs) + ", " + std::to_string(rows));
                    const Array x = upload(random_matrix(rows, shape.inner, 15),
                                           backend_->activation_type(*both));
                    const auto result = [&](const Consumers& consumers) {
                        const Array gated = activations == DType::I8G32
                                                ? poisoned_activations(rows, shape.outputs)
                                                : poisoned(rows, shape.outputs);
                        const Array scratch = poisoned(rows, 2 * shape.outputs);
                        const Array out = poisoned(rows, 40);
                        for (int i = 0; i < 2; ++i) {
                            backend_->run(MatmulGated{
                                gated, scratch, x, *both, Activation::silu, {}, consumers});
                            backend_->run(Matmul{out, gated, *down});
                        }
                        return download(out);
                    };
                    ASSERT_TRUE(same_bits(result({}), result({down.get()})));
                }
            }
        }
}

// One norm for several matmuls, in any order, with one weight type or two.
TEST_P(MatmulTest, SeveralConsumersOfANorm) {
    constexpr int kInner = 256;
    const Array scale = upload(random_matrix(1, kInner, 14));
    for (DType type : {DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0})
        for (DType other : {type, type == DType::Q4_0 ? DType::Q8_0 : DType::Q4_0})
            for (int rows : {1, 9, 40, 70}) {
                const auto a = upload_weight(random_matrix(48, kInner, 1), type);
                const auto b = upload_weight(random_matrix(32, kInner, 2), other);
                if (backend_->activation_type(*a) != backend_->activation_type(*b)) continue;
                const Array x = upload(random_matrix(rows, kInner, 15));
                Array norm = backend_->activation_type(*a) == DType::I8G32
                                 ? poisoned_activations(rows, kInner)
                                 : poisoned(rows, kInner);
                const auto products = [&](const Consumers& consumers, bool swapped) {
                    Array of_a = poisoned(rows, 48), of_b = poisoned(rows, 32);
                    backend_->run(RmsNorm{norm, x, scale, 1e-5f, consumers});
                    if (swapped) backend_->run(Matmul{of_b, norm, *b});
                    backend_->run(Matmul{of_a, norm, *a});
                    if (!swapped) backend_->run(Matmul{of_b, norm, *b});
                    return std::pair(download(of_a), download(of_b));
                };
                const auto want = products({}, false);
                for (bool swapped : {false, true}) {
                    const auto got = products({a.get(), b.get()}, swapped);
                    EXPECT_TRUE(same_bits(got.first, want.first)) << name(type) << " " << rows;
                    EXPECT_TRUE(same_bits(got.second, want.second)) << name(type) << " " << rows;
                }
            }
}

// q, k and v are blocks of a file, which may begin at any byte.
TEST_P(MatmulTest, TakesSeveralUnalignedBlocks) {
    const Matrix weight = rounded(random_matrix(30, 50, 9), DType::F16);
    const std::vector<uint16_t> packed = packed16(weight, DType::F16);
    std::vector<char> file(packed.size() * 2 + 1);
    std::memcpy(file.data() + 1, packed.data(), packed.size() * 2);
    for (DType type : {DType::F16, DType::F32}) {
        std::vector<WeightBlock> blocks;
        for (auto [first, rows] : {std::pair(0, 13), {13, 1}, {14, 16}})
            blocks.push_back({DType::F16, type, file.data() + 1 + first * 50 * 2, rows, 50});
        const auto whole = upload_weight(weight, type);
        const auto stacked = backend_->upload_weight(blocks);
        for (int rows : {1, 6}) {
            const Matrix x = random_matrix(rows, 50, 10);
            const Matrix got = multiply(x, *stacked);
            EXPECT_LE(nmse(got, reference::matmul(x, weight)), float_product_limit(50));
            EXPECT_TRUE(same_bits(got, multiply(x, *whole)));
        }
    }
}

// A kernel that reads beyond the last element of a row must not use values of other rows.
TEST_P(MatmulTest, RowsOfAWeightDoNotMeetTheirNeighbours) {
    constexpr int kOutputs = 70, kBad = 32;  // in the second strip, if the device has strips
    for (DType type : {DType::F32, DType::F16, DType::BF16})
        for (int inner : {3, 9, 50, 100, 132}) {
            SCOPED_TRACE(std::string(name(type)) + ", " + std::to_string(inner) + " columns");
            const Matrix clean = random_matrix(kOutputs, inner, 21);
            Matrix bad = clean;
            std::fill(bad[kBad], bad[kBad] + size_t(kOutputs - kBad) * inner,
                      std::numeric_limits<float>::infinity());
            const auto with_clean = upload_weight(clean, type), with_bad = upload_weight(bad, type);
            for (int rows : {1, 5}) {
                const Matrix x = random_matrix(rows, inner, 22);
                const Matrix want = multiply(x, *with_clean), got = multiply(x, *with_bad);
                for (int r = 0; r < rows; ++r)
                    ASSERT_TRUE(same_bits(got[r], want[r], kBad)) << "row " << r << " of " << rows;
            }
        }
}

TEST_P(MatmulTest, ConvertsTypes) {
    const Matrix weight = random_matrix(11, 37, 11), x = random_matrix(2, 37, 12);
    for (DType from : {DType::F32, DType::F16, DType::BF16})
        for (DType to : {DType::F32, DType::F16, DType::BF16}) {
            const std::vector<uint16_t> packed = packed16(weight, from);
            const void* data =
                from == DType::F32 ? static_cast<const void*>(weight.data.data()) : packed.data();
            const WeightBlock block{from, to, data, weight.rows, weight.cols};
            const Matrix stored = rounded(rounded(weight, from), to);
            EXPECT_LE(nmse(multiply(x, *backend_->upload_weight({&block, 1})),
                           reference::matmul(x, stored)),
                      float_product_limit(37));
        }
}

INSTANTIATE_TEST_SUITE_P(Devices, MatmulTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
