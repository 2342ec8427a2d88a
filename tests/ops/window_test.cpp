// Attention through a window: against doubles, and with the same bits whatever runs beside a row
// and whatever lies before its window.
#include "ops/attention_fixture.h"

namespace aerie {

using namespace reference;

namespace {

constexpr int kWindows[] = {1, 5, 24, 64, 65, 100, 1000};
constexpr int kLength = 200;

class WindowTest : public AttentionTest {
  protected:
    // Rows of a text, in passes of `step`, over a cache that holds the positions before them.
    Matrix rows_after(const Matrix& qkv, int first, int step, const Cache& cache) {
        Matrix out(qkv.rows - first, shape_.heads * shape_.head_dim);
        for (int at = first; at < qkv.rows; at += step) {
            const int count = std::min(step, qkv.rows - at);
            const Matrix part = pass(rows_of(qkv, at, count), chain(at, count), cache);
            std::copy(part.data.begin(), part.data.end(), out[at - first]);
        }
        return out;
    }
    Cache plain_cache(DType type = DType::F16) { return make_cache(shape_, type, plain_pages()); }
};

TEST_P(WindowTest, MatchesDoubles) {
    for (const AttentionShape& shape : {AttentionShape{4, 2, 64}, {8, 1, 48}})
        for (DType type : {DType::F32, DType::F16}) {
            use(shape);
            const Matrix qkv = random_qkv(kLength, 1);
            for (int window : kWindows) {
                window_ = window;
                EXPECT_LE(nmse(prefill(qkv, 64, plain_cache(type)), expected(qkv, type)),
                          type == DType::F16 ? 1e-8 : 1e-11)
                    << shape.heads << " heads of " << shape.head_dim << ", " << name(type)
                    << ", window " << window;
            }
        }
}

// Passes of 1 to 64 rows across chunks. Padding and rows of other texts do not matter either
// (attention_test.cpp).
TEST_P(WindowTest, RowsStandAlone) {
    use({4, 2, 32});
    constexpr int kFirst = 120;
    const Matrix qkv = random_qkv(kFirst + 66, 2);
    for (int window : kWindows) {
        window_ = window;
        const Cache cache = plain_cache();
        prefill(rows_of(qkv, 0, kFirst), 64, cache);
        const Matrix alone = rows_after(qkv, kFirst, 1, cache);
        for (int rows = 2; rows <= 64; rows += rows < 8 ? 1 : int(GetParam().step))
            ASSERT_TRUE(same_bits(alone, rows_after(qkv, kFirst, rows, cache)))
                << "window " << window << ", " << rows << " rows";
    }
}

TEST_P(WindowTest, OfTheWholeHistoryIsNone) {
    use({4, 2, 64});
    const Matrix qkv = random_qkv(kLength, 3);
    const Matrix whole = prefill(qkv, 64, plain_cache());
    for (int window : {1, 64, 100, kLength - 1, kLength, kLength + 1, 1 << 24}) {
        window_ = window;
        const Matrix got = prefill(qkv, 64, plain_cache());
        const int same = std::min(window, kLength);
        EXPECT_TRUE(same_bits(got[0], whole[0], same * got.cols)) << "window " << window;
        if (same == kLength) continue;
        EXPECT_FALSE(same_bits(got[same], whole[same], got.cols)) << "window " << window;
    }
}

// Anything may lie there, even infinity.
TEST_P(WindowTest, WhatLiesBeforeItCountsForNothing) {
    use({4, 2, 64});
    const Matrix qkv = random_qkv(kLength, 4);
    const int last = kLength - 1;
    for (DType type : {DType::F32, DType::F16})
        for (int window : kWindows) {
            if (window >= kLength) continue;
            window_ = window;
            const Cache cache = plain_cache(type);
            prefill(rows_of(qkv, 0, last), 64, cache);
            const Matrix own = rows_of(qkv, last, 1);
            const Matrix want = pass(own, chain(last, 1), cache);
            const auto fill_before = [&](int count) {
                const Matrix bad(count, cache.layer.k.cols, std::numeric_limits<float>::infinity());
                const std::vector<uint16_t> halves = packed16(bad, DType::F16);
                for (const Tensor& part : {cache.layer.k, cache.layer.v})
                    backend_->write(part.row_range(0, count),
                                    type == DType::F32 ? static_cast<const void*>(bad.data.data())
                                                       : halves.data());
            };
            fill_before(last + 1 - window);
            EXPECT_TRUE(same_bits(want, pass(own, chain(last, 1), cache))) << "window " << window;
            if (window == 1) continue;
            fill_before(last + 2 - window);  // one more position, inside the window
            EXPECT_FALSE(same_bits(want, pass(own, chain(last, 1), cache))) << "window " << window;
        }
}

// The window counts drafted ancestors by their positions, wherever their slots are.
TEST_P(WindowTest, TreesEqualChains) {
    use({4, 2, 64});
    const Matrix nodes = random_qkv(kNodes, 6);
    for (int committed : {kCommitted, 130})
        for (int window : {1, 3, 5, 24, 64, 65, 100}) {
            window_ = window;
            const Matrix text = random_qkv(committed, 5);
            const Cache cache = plain_cache();
            prefill(text, 64, cache);
            const Matrix got =
                pass(nodes, tree_rows({8, 3, 1, 40, 70, 2, 0, 5, 4}, committed), cache);
            for (int n : {0, 4, 6, 8}) {
                std::vector<int> path;
                for (int a = n; a >= 0; a = kParents[a]) path.insert(path.begin(), a);
                const Cache plain = plain_cache();
                prefill(text, 64, plain);
                Matrix want;
                for (size_t i = 0; i < path.size(); ++i)
                    want = pass(rows_of(nodes, path[i], 1), chain(committed + int(i), 1), plain);
                ASSERT_TRUE(same_bits(got[n], want[0], got.cols))
                    << "node " << n << " after " << committed << ", window " << window;
            }
        }
}

INSTANTIATE_TEST_SUITE_P(Devices, WindowTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
