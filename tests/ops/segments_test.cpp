// Weights whose rows are stored in several types: each row has the bits that it has in a weight of
// its own type.
#include <cstring>

#include "ops/device_test.h"
#include "reference/quantised.h"

namespace aerie {

using namespace reference;

namespace {

class SegmentsTest : public DeviceTest {};

// A weight with rows of these types, and each part as a weight of its own.
struct MixedWeight {
    static constexpr int kRows[] = {17, 33, 5};

    MixedWeight(Backend& be, const Matrix& values, const std::vector<DType>& types,
                WeightUse use = WeightUse::multiply, bool equal = false) {
        std::vector<WeightBlock> blocks;
        int first = 0;
        for (size_t i = 0; i < types.size(); ++i) {
            const int rows = equal ? values.rows / int(types.size()) : kRows[i];
            blocks.push_back({DType::F32, types[i], values[first], rows, values.cols});
            apart.push_back(be.upload_weight({&blocks.back(), 1}));
            first += rows;
        }
        whole = be.upload_weight(blocks, use);
    }

    std::unique_ptr<Weight> whole;
    std::vector<std::unique_ptr<Weight>> apart;
};

const std::vector<std::vector<DType>> kMixtures = {
    {DType::Q8_0, DType::Q4_0},
    {DType::Q4_0, DType::Q8_0, DType::Q4_0},
    {DType::F16, DType::Q8_0},
    {DType::Q4_0, DType::F32, DType::BF16},
    {DType::BF16, DType::Q8_0, DType::F16},
    {DType::F32, DType::F16},
};

std::string names_of(const std::vector<DType>& types) {
    std::string names;
    for (DType type : types) names += std::string(name(type)) + " ";
    return names;
}

TEST_P(SegmentsTest, HaveTheBitsOfWeightsOfTheirOwn) {
    for (const std::vector<DType>& types : kMixtures)
        for (int inner : {96, 1056}) {
            const Matrix values = random_matrix(55, inner, 21, 0.1f);
            const MixedWeight mixed(*backend_, values, types);
            const Weight& whole = *mixed.whole;
            ASSERT_EQ(whole.segments.size(), types.size());
            const Array bias = upload(random_matrix(1, whole.rows, 22));
            const Array scale = upload(random_matrix(1, inner, 23));
            for (int rows : {1, 3, 8, 9, 17, 64, 70}) {
                SCOPED_TRACE(names_of(types) + std::to_string(inner) + ", " + std::to_string(rows) +
                             " rows");
                const Array x = upload(random_matrix(rows, inner, 24));
                const auto normed = [&](const Weight& w) {
                    Array out = backend_->activation_type(w) == DType::I8G32
                                    ? poisoned_activations(rows, inner)
                                    : poisoned(rows, inner);
                    backend_->run(RmsNorm{out, x, scale, 1e-5f, {&w}});
                    return out;
                };
                const Matrix before = random_matrix(rows, whole.rows, 25);
                const Array got = upload(before), want = upload(before);
                const Array got_plain = poisoned(rows, whole.rows);
                backend_->run(Matmul{got_plain, normed(whole), whole});
                backend_->run(Matmul{got, normed(whole), whole, Accumulate::yes, bias});
                const Array want_plain = poisoned(rows, whole.rows);
                for (size_t i = 0; i < types.size(); ++i) {
                    const WeightSegment& part = whole.segments[i];
                    const auto columns = [&](const Array& all) {
                        return all.tensor.col_range(part.first_row, part.rows);
                    };
                    const Weight& own = *mixed.apart[i];
                    backend_->run(Matmul{columns(want_plain), normed(own), own});
                    backend_->run(
                        Matmul{columns(want), normed(own), own, Accumulate::yes, columns(bias)});
                }
                ASSERT_TRUE(same_bits(download(got_plain), download(want_plain)));
                ASSERT_TRUE(same_bits(download(got), download(want)));
            }
        }
}

TEST_P(SegmentsTest, MayBeGateAndUp) {
    for (const auto& [gate, up] : {std::pair(DType::Q8_0, DType::Q4_0),
                                   {DType::Q4_0, DType::F16},
                                   {DType::F32, DType::BF16}})
        for (int outputs : {5, 32}) {
            const Matrix values = random_matrix(2 * outputs, 96, 26, 0.1f);
            const MixedWeight mixed(*backend_, values, {gate, up}, WeightUse::gated, true);
            const bool quantised = backend_->activation_type(*mixed.whole) == DType::I8G32;
            for (int rows : {1, 9, 33}) {
                SCOPED_TRACE(names_of({gate, up}) + std::to_string(rows) + " rows");
                const Array x =
                    upload(random_matrix(rows, 96, 27), quantised ? DType::I8G32 : DType::F32);
                const Array products = poisoned(rows, 2 * outputs);
                backend_->run(Matmul{products, x, *mixed.whole});
                const Array want = poisoned(rows, outputs), got = poisoned(rows, outputs);
                backend_->run(Gated{want, products, Activation::silu});
                backend_->run(MatmulGated{got, poisoned(rows, 2 * outputs), x, *mixed.whole,
                                          Activation::silu});
                ASSERT_TRUE(same_bits(download(want), download(got)));
                if (outputs % kGroup != 0) continue;
                const Array groups = poisoned_activations(rows, outputs);
                backend_->run(MatmulGated{groups, products, x, *mixed.whole, Activation::silu});
                const auto blocks = download_activations(groups);
                const auto expected = packed_groups(download(want), pack_i8g32);
                ASSERT_EQ(
                    std::memcmp(blocks.data(), expected.data(), blocks.size() * sizeof(blocks[0])),
                    0);
            }
        }
}

// Blocks as a file holds them, beside rows of another type.
TEST_P(SegmentsTest, HoldBlocksOfAFileBesideAnotherType) {
    for (DType type : {DType::Q4_K, DType::Q6_K, DType::Q5_1}) {
        if (!backend_->stores(type)) GTEST_SKIP() << "SKIPPED: does not store " << name(type);
        constexpr int kCols = 1280, kOthers = 19, kOfFile = 20;
        const Matrix others = random_matrix(kOthers, kCols, 31, 0.1f);
        const Blocks blocks = random_blocks(type, kOfFile, kCols, 35);
        const WeightBlock stored = {type, type, blocks.data.data(), kOfFile, kCols};
        const WeightBlock other = {DType::F32, DType::Q8_0, others.data.data(), kOthers, kCols};
        const auto whole = backend_->upload_weight(std::vector{other, stored});
        ASSERT_EQ(whole->segments.size(), 2u);
        ASSERT_EQ(backend_->activation_type(*whole), DType::I8G32);
        const Array bias = upload(random_matrix(1, whole->rows, 32));
        for (int columns : {1, 2, 7, 8, 33, 64, 130}) {
            SCOPED_TRACE(std::string(name(type)) + ", " + std::to_string(columns) + " rows");
            const Matrix values = random_matrix(columns, kCols, 33);
            const Array x = upload(values, DType::I8G32);
            const Matrix before = random_matrix(columns, whole->rows, 34);
            const Array got = poisoned(columns, whole->rows), added = upload(before);
            backend_->run(Matmul{got, x, *whole});
            backend_->run(Matmul{added, x, *whole, Accumulate::yes, bias});
            const Matrix first = quantised_matmul(values, packed_blocks(others, DType::Q8_0));
            const Matrix second = quantised_matmul(values, blocks);
            const Matrix shifts = download(bias), plain = download(got), sums = download(added);
            for (int m = 0; m < columns; ++m)
                for (int n = 0; n < whole->rows; ++n) {
                    const float want = n < kOthers ? first[m][n] : second[m][n - kOthers];
                    ASSERT_EQ(plain[m][n], want) << m << ", " << n;
                    ASSERT_EQ(sums[m][n], before[m][n] + (want + shifts[0][n])) << m << ", " << n;
                }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, SegmentsTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
