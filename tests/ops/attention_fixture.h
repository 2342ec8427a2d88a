// A cache, a text that fills it, and draft trees below it, for the tests of attention.
#pragma once

#include <cmath>
#include <limits>
#include <numeric>

#include "ops/device_test.h"
#include "reference/layers.h"

namespace aerie {

constexpr int kPages = 6;

// A cache of one or two sequences, and the passes that fill it.
class AttentionTest : public DeviceTest {
  protected:
    using Matrix = reference::Matrix;
    using Exact = reference::Exact;
    using Indices = reference::Indices;

    struct Cache {
        Buffer k, v, pages;
        KvLayer layer;
    };

    Cache make_cache(const AttentionShape& shape, DType type, const Indices& pages) {
        const int rows = (kPages * pages.rows + 1) * kPageSize,
                  cols = shape.kv_heads * shape.head_dim;
        Cache cache;
        for (auto [memory, tensor] :
             {std::pair(&cache.k, &cache.layer.k), {&cache.v, &cache.layer.v}}) {
            *memory = backend_->allocate(dense_bytes(type, rows, cols));
            *tensor = dense(memory->get(), type, rows, cols);
            // Rows that were never written hold NaN: reading one would show.
            const Matrix poison(rows, cols, std::numeric_limits<float>::quiet_NaN());
            if (type == DType::F32)
                backend_->write(*tensor, poison.data.data());
            else
                backend_->write(*tensor, packed16(poison, type).data());
        }
        cache.pages = backend_->allocate(dense_bytes(DType::I32, pages.rows, pages.cols));
        cache.layer.page_table = dense(cache.pages.get(), DType::I32, pages.rows, pages.cols);
        backend_->write(cache.layer.page_table, pages.data.data());
        return cache;
    }

    static Indices plain_pages(int sequences = 1) {
        Indices pages(sequences, kPages);
        std::iota(pages.data.begin(), pages.data.end(), 0);
        return pages;
    }

    // rope_append and attention of some rows; returns [rows, heads * head_dim].
    Matrix pass(const Matrix& qkv, const std::vector<Row>& rows, const Cache& cache) {
        const int columns = shape_.heads * shape_.head_dim;
        const Array x = upload(qkv), out = quantised_ ? poisoned_activations(qkv.rows, columns)
                                                      : poisoned(qkv.rows, columns);
        const Rows block = upload(rows);
        backend_->run(RopeAppend{x, rope_, block, shape_, cache.layer});
        backend_->run(Attention{out, x, block, shape_, cache.layer, scale_, window_});
        return quantised_ ? values_of(download_activations(out), columns) : download(out);
    }

    static Matrix values_of(const std::vector<BlockI8G32>& groups, int columns) {
        Matrix values(int(groups.size()) * kGroup / columns, columns);
        for (size_t i = 0; i < values.data.size(); ++i) {
            const BlockI8G32& group = groups[i / kGroup];
            values.data[i] = group.scale * float(group.q[i % kGroup]);
        }
        return values;
    }

    void use(const AttentionShape& shape) {
        shape_ = shape;
        scale_ = shape.usual_scale();
        table_ = Matrix(kPages * kPageSize, shape.head_dim);
        for (int p = 0; p < table_.rows; ++p)
            for (int i = 0; i < shape.head_dim / 2; ++i) {
                const double angle = p * std::pow(10000.0, -2.0 * i / shape.head_dim);
                table_[p][i] = float(std::cos(angle));
                table_[p][shape.head_dim / 2 + i] = float(std::sin(angle));
            }
        rope_ = upload(table_);
    }

    Matrix random_qkv(int rows, unsigned seed) const {
        return reference::random_matrix(
            rows, (shape_.heads + 2 * shape_.kv_heads) * shape_.head_dim, seed);
    }

    static Matrix rows_of(const Matrix& m, int first, int count) {
        Matrix out(count, m.cols);
        std::copy_n(m[first], out.data.size(), out.data.begin());
        return out;
    }

    // Rows first .. first + count - 1 of a prompt read in order.
    static std::vector<Row> chain(int first, int count) {
        std::vector<Row> rows;
        for (int p = first; p < first + count; ++p)
            rows.push_back({.position = p, .slot = p, .prefix = p});
        return rows;
    }

    // Runs the whole text, `step` rows at a time.
    Matrix prefill(const Matrix& qkv, int step, const Cache& cache) {
        Matrix out(qkv.rows, shape_.heads * shape_.head_dim);
        for (int first = 0; first < qkv.rows; first += step) {
            const int count = std::min(step, qkv.rows - first);
            const Matrix part = pass(rows_of(qkv, first, count), chain(first, count), cache);
            std::copy(part.data.begin(), part.data.end(), out[first]);
        }
        return out;
    }

    Exact expected(const Matrix& qkv, DType type) const {
        std::vector<int> positions(size_t(qkv.rows));
        std::iota(positions.begin(), positions.end(), 0);
        const Exact rotated = reference::rope(qkv, table_, positions, shape_);
        Matrix floats(qkv.rows, qkv.cols);
        std::copy(rotated.data.begin(), rotated.data.end(), floats.data.begin());
        const Matrix stored = rounded(floats, type);
        const int width = shape_.kv_heads * shape_.head_dim,
                  q_width = shape_.heads * shape_.head_dim;
        Exact out(qkv.rows, q_width);
        Matrix keys, values;
        for (int p = 0; p < qkv.rows; ++p) {
            keys.rows = values.rows = p + 1;
            keys.cols = values.cols = width;
            keys.data.insert(keys.data.end(), stored[p] + q_width, stored[p] + q_width + width);
            values.data.insert(values.data.end(), stored[p] + q_width + width,
                               stored[p] + q_width + 2 * width);
            const auto row = reference::attention(floats[p], keys, values, shape_, scale_, window_);
            std::copy(row.begin(), row.end(), out[p]);
        }
        return out;
    }

    AttentionShape shape_;
    float scale_ = 0;
    int window_ = 0;
    bool quantised_ = false;  // a pass puts out I8G32
    Matrix table_;
    Array rope_;
};

// A draft tree: rows whose ancestors lie in scattered slots, checked against the same texts read in
// order. Node n extends kParents[n]; node 0 is the root, behind `committed` positions.
constexpr int kCommitted = 61, kNodes = 9;  // the tree crosses a chunk
constexpr int kParents[kNodes] = {-1, 0, 0, 1, 1, 3, 5, 2, 6};

inline std::vector<Row> tree_rows(const std::vector<int>& slots, int committed = kCommitted) {
    std::vector<Row> rows(kNodes);
    for (int n = 0; n < kNodes; ++n) {
        Row& row = rows[size_t(n)];
        if (n == 0) {
            row.position = row.prefix = committed;
        } else {
            row = rows[size_t(kParents[n])];
            row.path[row.depth()] = row.slot;
            ++row.position;
        }
        row.slot = committed + slots[size_t(n)];
    }
    return rows;
}

}  // namespace aerie
