// embed, rms_norm, swiglu, add, copy and gather_rows against doubles; a row alone has the bits that
// it has among others.
#include <cstring>

#include "core/pack_blocks.h"
#include "ops/device_test.h"
#include "reference/layers.h"

namespace aerie {

using namespace reference;

namespace {

class RowsTest : public DeviceTest {
  protected:
    // Every row of op(x) has the bits that it has alone.
    template <class Op>
    void expect_invariant(const Matrix& x, const Op& op) {
        const Matrix together = op(x);
        for (int r = 0; r < x.rows; ++r) {
            Matrix one(1, x.cols);
            std::copy_n(x[r], x.cols, one[0]);
            ASSERT_TRUE(same_bits(op(one)[0], together[r], together.cols)) << "row " << r;
        }
    }
};

TEST_P(RowsTest, RmsNorm) {
    for (int cols : {1, 16, 100, 256, 2048}) {
        const Matrix weight = random_matrix(1, cols, 1), x = random_matrix(9, cols, 2);
        const auto op = [&](const Matrix& values) {
            Array out = poisoned(values.rows, cols);
            backend_->run(RmsNorm{out, upload(values), upload(weight), 1e-5f});
            return download(out);
        };
        EXPECT_LE(nmse(op(x), reference::rms_norm(x, weight, 1e-5f)), 1e-12) << cols;
        expect_invariant(x, op);
    }
}

TEST_P(RowsTest, Swiglu) {
    for (int width : {1, 17, 704}) {
        const Matrix x = random_matrix(7, 2 * width, 3, 5);
        const auto op = [&](const Matrix& values) {
            Array out = poisoned(values.rows, width);
            backend_->run(Gated{out, upload(values), Activation::silu});
            return download(out);
        };
        EXPECT_LE(nmse(op(x), reference::swiglu(x)), 1e-12) << width;
        expect_invariant(x, op);
    }
}

TEST_P(RowsTest, SwigluFarFromZero) {
    Matrix x(1, 8, 1.0f);
    const float gates[] = {-1000, -100, 100, 1000};
    std::copy_n(gates, 4, x[0]);
    Array out = poisoned(1, 4);
    backend_->run(Gated{out, upload(x), Activation::silu});
    const Matrix got = download(out);
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(got[0][i], gates[i] > 0 ? gates[i] : 0, 1e-4);
}

TEST_P(RowsTest, AddCopyGather) {
    const Matrix a = random_matrix(5, 37, 4), b = random_matrix(5, 37, 5);
    Array sum = poisoned(5, 37), same = poisoned(5, 37), some = poisoned(3, 37);
    backend_->run(Add{sum, upload(a), upload(b)});
    backend_->run(Copy{same, upload(a)});
    Indices index(1, 3);
    index.data = {4, 0, 4};
    backend_->run(GatherRows{some, upload(a), upload(index)});
    Exact want(5, 37);
    for (size_t i = 0; i < want.data.size(); ++i) want.data[i] = a.data[i] + b.data[i];
    EXPECT_LE(nmse(download(sum), want), 0);
    EXPECT_TRUE(same_bits(download(same), a));
    const Matrix got = download(some);
    for (int r = 0; r < 3; ++r) EXPECT_TRUE(same_bits(got[r], a[index.data[size_t(r)]], 37));
}

TEST_P(RowsTest, EmbedLooksUpTokensAndLeavesPadding) {
    for (DType type : {DType::F32, DType::F16, DType::BF16}) {
        const Matrix table = random_matrix(11, 35, 6);
        std::vector<Row> rows(4);
        for (int r = 0; r < 4; ++r) rows[size_t(r)].token = (7 * r) % 11;
        rows[2] = {.token = -99, .slot = -1};
        const Matrix want = rounded(table, type);
        for (WeightUse use : {WeightUse::multiply, WeightUse::lookup}) {
            Array out = poisoned(4, 35);
            backend_->run(Embed{out, *upload_weight(table, type, use), upload(rows)});
            const Matrix got = download(out);
            for (int r : {0, 1, 3})
                EXPECT_TRUE(same_bits(got[r], want[rows[size_t(r)].token], 35)) << name(type);
            for (int i = 0; i < 35; ++i) EXPECT_EQ(got[2][i], 0);
        }
    }
}

TEST_P(RowsTest, EmbedPairHasTheBitsOfItsParts) {
    for (DType type : {DType::F32, DType::F16, DType::Q8_0})
        for (int cols : {32, 48, 160}) {
            if (is_quantised(type) && cols % kGroup != 0) continue;
            const auto table = upload_weight(random_matrix(11, cols, 6), type, WeightUse::lookup);
            const Matrix features = random_matrix(5, cols, 7);
            std::vector<Row> rows(5);
            for (int r = 0; r < 5; ++r) rows[size_t(r)].token = (7 * r) % 11;
            rows[3] = {.token = -99, .slot = -1};
            Indices index(1, 5);
            index.data = {4, 0, 4, 1, 2};
            const Array x = upload(features), chosen = upload(index);
            const Rows places = upload(rows);
            for (const Tensor& parents : {Tensor(chosen), Tensor{}}) {
                Array parts = poisoned(5, 2 * cols), whole = poisoned(5, 2 * cols);
                const Tensor all = parts, beside = all.col_range(cols, cols);
                backend_->run(Embed{all.col_range(0, cols), *table, places});
                if (parents)
                    backend_->run(GatherRows{beside, x, parents});
                else
                    backend_->run(Copy{beside, x});
                backend_->run(EmbedPair{whole, {}, *table, places, x, parents});
                ASSERT_TRUE(same_bits(download(whole), download(parts))) << name(type) << cols;

                const Array room = poisoned(5, 2 * cols);
                const Array groups = poisoned_activations(5, 2 * cols);
                backend_->run(EmbedPair{groups, room, *table, places, x, parents});
                const auto want = packed_groups(download(parts), pack_i8g32);
                const auto found = download_activations(groups);
                ASSERT_EQ(std::memcmp(found.data(), want.data(), found.size() * sizeof(found[0])),
                          0)
                    << name(type) << cols;
            }
        }
}

// Tables that stay in their file may begin at any byte, in several blocks.
TEST_P(RowsTest, EmbedFindsRowsOfSeveralBlocks) {
    const Matrix table = random_matrix(30, 20, 7);
    const std::vector<uint16_t> packed = packed16(table, DType::F16);
    std::vector<char> file(packed.size() * 2 + 1);
    std::memcpy(file.data() + 1, packed.data(), packed.size() * 2);
    std::vector<WeightBlock> blocks;
    for (auto [first, count] : {std::pair(0, 13), {13, 1}, {14, 16}})
        blocks.push_back({DType::F16, DType::F16, file.data() + 1 + first * 20 * 2, count, 20});
    const auto weight = backend_->upload_weight(blocks, WeightUse::lookup);
    std::vector<Row> rows(30);
    for (int r = 0; r < 30; ++r) rows[size_t(r)].token = r;
    Array out = poisoned(30, 20);
    backend_->run(Embed{out, *weight, upload(rows)});
    EXPECT_TRUE(same_bits(download(out), rounded(table, DType::F16)));
}

TEST_P(RowsTest, EmbedFindsRowsOfSeveralTypes) {
    const Matrix table = random_matrix(60, 64, 8);
    const std::pair<DType, int> parts[] = {
        {DType::Q4_0, 20}, {DType::F32, 3}, {DType::F32, 4}, {DType::BF16, 16}, {DType::Q8_0, 17}};
    std::vector<WeightBlock> blocks;
    Matrix want(60, 64);
    int first = 0;
    for (const auto& [type, count] : parts) {
        blocks.push_back({DType::F32, type, table[first], count, 64});
        Matrix part(count, 64);
        std::copy_n(table[first], part.data.size(), part.data.begin());
        const Matrix stored = rounded(part, type);
        std::copy_n(stored.data.begin(), stored.data.size(), want[first]);
        first += count;
    }
    std::vector<Row> rows(61);
    for (int r = 0; r < 60; ++r) rows[size_t(r)].token = r;
    rows[60] = {.token = -99, .slot = -1};
    for (WeightUse use : {WeightUse::multiply, WeightUse::lookup}) {
        const auto weight = backend_->upload_weight(blocks, use);
        EXPECT_EQ(weight->segments.size(), 4u);
        Array out = poisoned(61, 64);
        backend_->run(Embed{out, *weight, upload(rows)});
        const Matrix got = download(out);
        for (int r = 0; r < 60; ++r) EXPECT_TRUE(same_bits(got[r], want[r], 64)) << "row " << r;
        for (int i = 0; i < 64; ++i) EXPECT_EQ(got[60][i], 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, RowsTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
