// Sizes of real models: long rows of weights, long contexts, large vocabularies. The tests use few
// rows and few outputs, so that the slowest device takes seconds.
#include <numeric>

#include "ops/device_test.h"
#include "reference/choices.h"
#include "reference/layers.h"

namespace aerie {

using namespace reference;

namespace {

constexpr int kContext = 20000, kVocab = 128256;

class ModelShapesTest : public DeviceTest {
  protected:
    void SetUp() override {
        DeviceTest::SetUp();
        if (backend_)
            backend_->reserve({.rows = 16,
                               .top_k = 10,
                               .widest = 14336,
                               .vocab = kVocab,
                               .context = kContext,
                               .heads = 32,
                               .queries = 8,
                               .head_dim = 128});
    }

    Tensor cache_of(const Matrix& values) {
        kept_.push_back(backend_->allocate(dense_bytes(DType::F16, values.rows, values.cols)));
        const Tensor cache = dense(kept_.back().get(), DType::F16, values.rows, values.cols);
        backend_->write(cache, packed16(values, DType::F16).data());
        return cache;
    }

    Matrix multiply(const Matrix& x, const Weight& w) {
        Array out = poisoned(x.rows, w.rows);
        backend_->run(Matmul{out, upload(x, backend_->activation_type(w)), w});
        return download(out);
    }
};

// Llama's 1B to 70B: hidden sizes and feed-forward layers.
TEST_P(ModelShapesTest, LongRowsOfWeights) {
    for (int inner : {4096, 5632, 11008, 14336})
        for (DType type : {DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0}) {
            const Matrix weight = random_matrix(48, inner, 1, 0.05f);
            const auto device = upload_weight(weight, type);
            const bool quantised = backend_->activation_type(*device) == DType::I8G32;
            Matrix alone;
            for (int rows : {1, 11}) {
                const Matrix x = random_matrix(rows, inner, 2);
                const Exact want = reference::matmul(quantised ? rounded(x, DType::I8G32) : x,
                                                     rounded(weight, type));
                const Matrix got = multiply(x, *device);
                EXPECT_LE(nmse(got, want), quantised ? 1e-11 : float_product_limit(inner))
                    << name(type) << " " << inner << ", " << rows;
                if (rows == 1) alone = got;
                EXPECT_TRUE(same_bits(got[0], alone[0], got.cols)) << name(type) << " " << inner;
            }
        }
}

// The cache has fewer pages than the positions need, so some pages hold several parts of the
// history.
struct LongHistory {
    static constexpr int kPages = 17;
    AttentionShape shape;
    Matrix keys, values;  // rounded to F16
    Indices pages{1, (kContext + kPageSize - 1) / kPageSize};

    explicit LongHistory(const AttentionShape& shape)
        : shape(shape),
          keys(rounded(random_matrix(kPages * kPageSize, shape.kv_heads * shape.head_dim, 1),
                       DType::F16)),
          values(rounded(random_matrix(keys.rows, keys.cols, 2), DType::F16)) {
        for (int i = 0; i < pages.cols; ++i) pages[0][i] = i * 7 % kPages;
    }
    int row(int position) const {
        return pages[0][position / kPageSize] * kPageSize + position % kPageSize;
    }
    // Attention of a row of queries at this position, in doubles.
    std::vector<double> attention(const float* q, int position) const {
        Matrix k(position + 1, keys.cols), v(position + 1, keys.cols);
        for (int p = 0; p <= position; ++p) {
            std::copy_n(keys[row(p)], keys.cols, k[p]);
            std::copy_n(values[row(p)], keys.cols, v[p]);
        }
        return reference::attention(q, k, v, shape, shape.usual_scale());
    }
};

// There are so many chunks that the CUDA backend has no room for the partial results of all rows at
// once and takes some rows after others; every row has the bits that it has alone.
TEST_P(ModelShapesTest, LongContexts) {
    for (const AttentionShape& shape : {AttentionShape{32, 8, 128}, {32, 32, 128}, {32, 8, 64}}) {
        const LongHistory history(shape);
        const int last = shape.head_dim == 128 && shape.kv_heads == 8 ? kContext - 1 : 1300;
        const std::vector<int> positions = {5,  63, 64, 700, 65,   127, 4200,
                                            12, 0,  3,  1,   last, 8,   90};
        const int count = int(positions.size());
        const Tensor k = cache_of(history.keys), v = cache_of(history.values);
        const Array pages = upload(history.pages);
        const KvLayer layer{k, v, pages};
        const Matrix qkv =
            random_matrix(count, (shape.heads + 2 * shape.kv_heads) * shape.head_dim, 3);
        std::vector<Row> rows;
        for (int p : positions) rows.push_back({.position = p, .slot = p, .prefix = p});

        const auto pass = [&](int first, int n) {
            Matrix some(n, qkv.cols);
            std::copy_n(qkv[first], some.data.size(), some.data.begin());
            Array out = poisoned(n, shape.heads * shape.head_dim);
            backend_->run(
                Attention{out, upload(some),
                          upload(std::vector(rows.begin() + first, rows.begin() + first + n)),
                          shape, layer, shape.usual_scale()});
            return download(out);
        };
        const Matrix got = pass(0, count);
        for (int r = 0; r < count; ++r)
            EXPECT_TRUE(same_bits(got[r], pass(r, 1)[0], got.cols)) << "row " << r;
        for (int r : {3, 13}) {
            Exact want(1, got.cols);
            want.data = history.attention(qkv[r], positions[size_t(r)]);
            Matrix row(1, got.cols);
            std::copy_n(got[r], got.cols, row[0]);
            EXPECT_LE(nmse(row, want), 1e-10) << "row " << r;
        }
    }
}

TEST_P(ModelShapesTest, LargeVocabularies) {
    constexpr int kTop = 10;
    Matrix logits = random_matrix(2, kVocab, 4);
    logits[1][kVocab - 1] = logits[1][kVocab - 2] = 9;  // a tie at the very end: the lower id wins
    const Array device = upload(logits);
    Array ids = poisoned_indices(2, kTop), log_probs = poisoned(2, kTop);
    TopK step{};
    step.choice.logits = device;
    step.ids = ids;
    step.log_probs = log_probs;
    backend_->run(step);
    const Indices got = download_indices(ids);
    const Matrix got_probs = download(log_probs);
    for (int r = 0; r < 2; ++r) {
        const std::vector<float> row(logits[r], logits[r] + kVocab);
        const std::vector<Ranked> want = reference::top_k({row.begin(), row.end()}, kTop);
        for (int i = 0; i < kTop; ++i) {
            EXPECT_EQ(got[r][i], want[size_t(i)].id) << "row " << r << " rank " << i;
            EXPECT_NEAR(got_probs[r][i], want[size_t(i)].log_prob, 1e-5);
        }
    }
    EXPECT_EQ(got[1][0], kVocab - 2);
    Array chosen = poisoned_indices(1, 2);
    backend_->run(Sample{chosen, step.choice, upload(std::vector<Row>(2))});
    EXPECT_EQ(download_indices(chosen)[0][1], kVocab - 2);
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelShapesTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
