// Quantised weights as files hold them, in every type that a device stores: products have the bits
// of their definition (core/quant.h).
#include <cstring>

#include "core/pack_blocks.h"
#include "ops/device_test.h"
#include "reference/quantised.h"

namespace aerie {

using namespace reference;

namespace {

constexpr DType kTypes[] = {DType::Q8_0, DType::Q4_0,   DType::Q4_1, DType::Q5_0,
                            DType::Q5_1, DType::IQ4_NL, DType::Q2_K, DType::Q3_K,
                            DType::Q4_K, DType::Q5_K,   DType::Q6_K, DType::IQ4_XS};

class BlockTypesTest : public DeviceTest {
  protected:
    // Calls body(type) for each type that the device stores.
    template <class Body>
    void for_types(const Body& body) {
        for (DType type : kTypes) {
            if (!backend_->stores(type)) continue;
            SCOPED_TRACE(name(type));
            body(type);
            if (HasFatalFailure()) return;
        }
    }
    std::unique_ptr<Weight> upload_blocks(const Blocks& blocks,
                                          WeightUse use = WeightUse::multiply) {
        const WeightBlock block = {blocks.type, blocks.type, blocks.data.data(), blocks.rows,
                                   blocks.cols};
        return backend_->upload_weight({&block, 1}, use);
    }
    Matrix multiply(const Matrix& x, const Weight& w) {
        const Array out = poisoned(x.rows, w.rows);
        backend_->run(Matmul{out, upload(x, DType::I8G32), w});
        return download(out);
    }
    void expect_products(const Matrix& x, const Blocks& blocks) {
        const Matrix got = multiply(x, *upload_blocks(blocks));
        const Matrix want = quantised_matmul(x, blocks);
        for (int m = 0; m < x.rows; ++m)
            ASSERT_TRUE(same_bits(got[m], want[m], blocks.rows))
                << blocks.cols << " -> " << blocks.rows << ", row " << m << " of " << x.rows;
    }
};

TEST_P(BlockTypesTest, ProductsHaveTheBitsOfTheDefinition) {
    for_types([&](DType type) {
        for (int cols : {256, 1024, 1280, 2304})
            for (int outputs : {1, 17, 80})
                expect_products(random_matrix(11, cols, 2), random_blocks(type, outputs, cols, 1));
        if (unit_elements(type) == kGroup)
            for (int cols : {32, 96, 1056})
                expect_products(random_matrix(3, cols, 3), random_blocks(type, 33, cols, 4));
    });
}

TEST_P(BlockTypesTest, RowsDoNotDependOnTheirNeighbours) {
    for_types([&](DType type) {
        const Blocks blocks = random_blocks(type, 70, 1280, 5);
        const auto weight = upload_blocks(blocks);
        const Matrix x = random_matrix(128, 1280, 6);
        const Matrix want = quantised_matmul(x, blocks);
        for (int rows = 1; rows <= 128; rows = rows < 64 ? rows + 1 : rows * 2) {
            Matrix few(rows, x.cols);
            std::copy_n(x.data.begin(), few.data.size(), few.data.begin());
            const Matrix got = multiply(few, *weight);
            for (int m = 0; m < rows; ++m)
                ASSERT_TRUE(same_bits(got[m], want[m], blocks.rows)) << m << " of " << rows;
        }
    });
}

// The largest values of both sides: nothing overflows on the way.
TEST_P(BlockTypesTest, ExtremesAreExact) {
    for_types([&](DType type) {
        for (bool ones : {false, true})
            for (float sign : {1.0f, -1.0f})
                expect_products(Matrix(9, 512, sign), extreme_blocks(type, 18, 512, ones));
    });
}

TEST_P(BlockTypesTest, RowsAreFound) {
    for_types([&](DType type) {
        const Blocks blocks = random_blocks(type, 37, 512, 7);
        const auto weight = upload_blocks(blocks, WeightUse::lookup);
        for (int row : {0, 1, 15, 16, 36}) {
            const Array found = poisoned(1, blocks.cols);
            backend_->run(Embed{found, *weight, upload({Row{.token = row}})});
            std::vector<float> want(size_t(blocks.cols));
            unpack(want.data(), blocks.row(row), type, want.size());
            ASSERT_TRUE(same_bits(download(found)[0], want.data(), blocks.cols)) << row;
        }
    });
}

// Floats are packed as core/pack_blocks.h defines, on the host or on the device.
TEST_P(BlockTypesTest, FloatsBecomeTheSameBlocks) {
    for_types([&](DType type) {
        if (!can_pack(type)) return;
        const Matrix values = random_matrix(21, 512, 8, 0.1f);
        Blocks blocks = {type, values.rows, values.cols, {}};
        blocks.data.resize(size_t(values.rows) * blocks.row_bytes());
        pack(blocks.data.data(), values.data.data(), type, values.data.size());
        const Matrix x = random_matrix(2, values.cols, 9);
        const Matrix got = multiply(x, *upload_weight(values, type));
        EXPECT_TRUE(same_bits(got, quantised_matmul(x, blocks)));
    });
}

// A backend may store gate and up in its own layout, and a norm may leave its result in another
// form.
TEST_P(BlockTypesTest, GateAndUpHaveTheBitsOfTheirProducts) {
    constexpr int kOutputs = 64, kCols = 512;
    const Array norm = upload(random_matrix(1, kCols, 10));
    for_types([&](DType type) {
        const Blocks blocks = random_blocks(type, 2 * kOutputs, kCols, 11);
        const auto plain = upload_blocks(blocks);
        const auto half = [&](int first) {
            return WeightBlock{type, type, blocks.row(first), kOutputs, kCols};
        };
        const auto paired =
            backend_->upload_weight(std::vector{half(0), half(kOutputs)}, WeightUse::gated);
        for (int rows : {1, 8, 9, 17, 40}) {
            const Array x = upload(random_matrix(rows, kCols, 12));
            const Array a = poisoned_activations(rows, kCols),
                        b = poisoned_activations(rows, kCols);
            const Array products = poisoned(rows, 2 * kOutputs);
            const Array want = poisoned(rows, kOutputs), got = poisoned(rows, kOutputs);
            const Array groups = poisoned_activations(rows, kOutputs);
            backend_->run(RmsNorm{a, x, norm, 1e-5f});
            backend_->run(Matmul{products, a, *plain});
            backend_->run(Gated{want, products, Activation::silu});
            backend_->run(RmsNorm{b, x, norm, 1e-5f, {paired.get()}});
            backend_->run(MatmulGated{groups, products, b, *paired, Activation::silu});
            backend_->run(MatmulGated{got, products, a, *paired, Activation::silu});
            ASSERT_TRUE(same_bits(download(got), download(want))) << rows;
            const auto expected = packed_groups(download(want), pack_i8g32);
            const auto found = download_activations(groups);
            ASSERT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(found[0])),
                      0)
                << rows;
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Devices, BlockTypesTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
