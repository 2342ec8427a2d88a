// matmul_rope: queries, keys and values have the bits of the matmul, the norm and the rotation that
// it replaces.
#include <array>

#include "ops/attention_fixture.h"

namespace aerie {

using reference::random_matrix;

namespace {

class MatmulRopeTest : public AttentionTest {
  protected:
    struct Results {
        Matrix q;
        std::vector<std::byte> k, v;
    };

    std::vector<std::byte> bytes_of(const Tensor& t) {
        std::vector<std::byte> bytes(dense_bytes(t.dtype, t.rows, t.cols));
        backend_->read(t, bytes.data());
        return bytes;
    }

    // The tensors that attention reads: the queries and the caches.
    Results results(const Array& qkv, const Cache& cache) {
        const int columns = shape_.heads * shape_.head_dim;
        Results all = {Matrix(qkv.tensor.rows, columns), bytes_of(cache.layer.k),
                       bytes_of(cache.layer.v)};
        const Matrix whole = download(qkv);
        for (int r = 0; r < whole.rows; ++r) std::copy_n(whole[r], columns, all.q[r]);
        return all;
    }

    // Rows of two sequences; every fifth row is padding.
    static std::vector<Row> mixed_rows(int count) {
        std::vector<Row> rows(static_cast<size_t>(count));
        for (int i = 0; i < count; ++i) {
            Row& row = rows[size_t(i)];
            row.sequence = i % 2;
            row.position = row.slot = row.prefix = 50 + i;
            if (i % 5 == 4) row.slot = -1;
        }
        return rows;
    }

    static Matrix without(Matrix q, const std::vector<Row>& rows) {
        for (int r = 0; r < q.rows; ++r)
            if (rows[size_t(r)].slot < 0) std::fill_n(q[r], q.cols, 0.0f);
        return q;
    }

    void compare(DType type, DType cache_type, int inner, int count, bool has_norm, bool has_bias) {
        compare({type, type, type}, cache_type, inner, count, has_norm, has_bias);
    }
    // types: of q, k and v.
    void compare(const std::array<DType, 3>& types, DType cache_type, int inner, int count,
                 bool has_norm, bool has_bias) {
        const int columns = (shape_.heads + 2 * shape_.kv_heads) * shape_.head_dim;
        const Matrix values = random_matrix(columns, inner, 3, 0.1f);
        std::vector<WeightBlock> blocks;
        int first = 0;
        for (size_t i = 0; i < types.size(); ++i) {
            const int rows = (i == 0 ? shape_.heads : shape_.kv_heads) * shape_.head_dim;
            blocks.push_back({DType::F32, types[i], values[first], rows, inner});
            first += rows;
        }
        const auto weight = backend_->upload_weight(blocks);
        const Array bias = upload(random_matrix(1, columns, 4));
        const Array x = upload(random_matrix(count, inner, 5));
        const Array norm = upload(random_matrix(1, inner, 6));
        const bool quantised = backend_->activation_type(*weight) == DType::I8G32;
        const auto rows = mixed_rows(count);
        const Rows block = upload(rows);
        const auto run = [&](bool at_once) {
            const Cache cache = make_cache(shape_, cache_type, plain_pages(2));
            const Array qkv = poisoned(count, columns);
            const Array input =
                quantised ? poisoned_activations(count, inner) : poisoned(count, inner);
            if (has_norm) {
                RmsNorm op{input, x, norm, 1e-5f};
                if (at_once) op.consumers = {weight.get()};
                backend_->run(op);
            } else {
                backend_->run(Copy{input, x});
            }
            const Tensor added = has_bias ? Tensor(bias) : Tensor();
            if (at_once) {
                backend_->run(
                    MatmulRope{qkv, input, *weight, added, rope_, block, shape_, cache.layer});
            } else {
                backend_->run(Matmul{qkv, input, *weight, Accumulate::no, added});
                backend_->run(RopeAppend{qkv, rope_, block, shape_, cache.layer});
            }
            return results(qkv, cache);
        };
        const Results want = run(false), got = run(true);
        EXPECT_TRUE(same_bits(without(got.q, rows), without(want.q, rows)));
        EXPECT_EQ(got.k, want.k);
        EXPECT_EQ(got.v, want.v);
    }
};

TEST_P(MatmulRopeTest, HasTheBitsOfItsParts) {
    for (const AttentionShape& shape :
         {AttentionShape{4, 2, 64}, {2, 1, 128}, {3, 3, 32}, {2, 2, 48}, {6, 2, 96}}) {
        use(shape);
        for (DType type : {DType::F32, DType::F16, DType::Q4_0})
            for (DType cache : {DType::F16, DType::F32})
                for (int rows : {1, 3, 9, 64}) {
                    if (cache == DType::F32 && type == DType::F16) continue;
                    SCOPED_TRACE(std::string(name(type)) + ", heads of " +
                                 std::to_string(shape.head_dim) + ", " + std::to_string(rows) +
                                 " rows, cache of " + name(cache));
                    compare(type, cache, 96, rows, rows % 2 == 1, rows % 3 == 0);
                }
    }
}

TEST_P(MatmulRopeTest, OfSeveralTypes) {
    use({4, 2, 64});
    for (const std::array<DType, 3>& types : {std::array{DType::Q4_0, DType::Q4_0, DType::Q8_0},
                                              {DType::F16, DType::F16, DType::BF16},
                                              {DType::F16, DType::Q8_0, DType::F32}})
        for (int rows : {1, 8, 20}) {
            SCOPED_TRACE(std::string(name(types[1])) + ", " + std::to_string(rows) + " rows");
            compare(types, DType::F16, 96, rows, true, true);
        }
}

// The matmul may normalise a single row itself, whatever the row's width.
TEST_P(MatmulRopeTest, NormalisesOneRow) {
    backend_->reserve({.rows = 1, .widest = 8448});
    use({4, 2, 64});
    for (DType type : {DType::F16, DType::BF16, DType::Q8_0, DType::Q6_K})
        for (int inner : {256, 1280, 4352, 8448}) {
            if (!backend_->stores(type)) continue;
            SCOPED_TRACE(std::string(name(type)) + ", " + std::to_string(inner) + " columns");
            compare(type, DType::F16, inner, 1, true, false);
        }
}

INSTANTIATE_TEST_SUITE_P(Devices, MatmulRopeTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
