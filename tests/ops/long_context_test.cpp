// rope_append, attention and kv_compact at the end of long contexts: the bits of the portable CPU
// kernels, which are compared with doubles. The host fills the cache, so that only few rows are
// computed.
#include <cmath>
#include <cstring>
#include <numeric>

#include "ops/device_test.h"
#include "reference/layers.h"

namespace aerie {

using namespace reference;

namespace {

constexpr AttentionShape kShape{4, 2, 16};
constexpr int kWidth = 2 * 16;              // columns of a row of the cache
constexpr int kColumns = (4 + 2 * 2) * 16;  // columns of qkv
constexpr int kRows = 7, kNodes = 4;        // the last rows: a draft tree below the third one
constexpr int kParents[kNodes] = {-1, 0, 0, 2};
constexpr int kSlots[kNodes] = {0, 2, 1, 5};

// The results of a pass over the end of a context of `length` positions.
struct Results {
    Matrix attended, after_commit;
    std::vector<BlockI8G32> quantised;
    Matrix rotated;
};

class LongContextTest : public DeviceTest {
  protected:
    // Three rows of a text that ends at `length`, then a draft tree below it.
    static std::vector<Row> rows_at(int length) {
        std::vector<Row> rows(kRows);
        for (int r = 0; r < kRows - kNodes; ++r) {
            const int position = length - (kRows - kNodes) + r;
            rows[size_t(r)] = {.position = position, .slot = position, .prefix = position};
        }
        for (int n = 0; n < kNodes; ++n) {
            Row& row = rows[size_t(kRows - kNodes + n)];
            row = n == 0 ? Row{.position = length, .prefix = length}
                         : rows[size_t(kRows - kNodes + kParents[n])];
            if (n > 0) {
                row.path[row.depth()] = row.slot;
                ++row.position;
            }
            row.slot = length + kSlots[n];
        }
        return rows;
    }

    // Pages in reverse order, so that no page lies where it would without a page table.
    KvLayer make_cache(Backend& be, int length, DType type) {
        const int pages = (length + 64 + kPageSize - 1) / kPageSize;
        KvLayer layer;
        for (Tensor* tensor : {&layer.k, &layer.v}) {
            const Matrix values = random_matrix(pages * kPageSize, kWidth, tensor == &layer.k);
            kept_.push_back(be.allocate(dense_bytes(type, values.rows, kWidth)));
            *tensor = dense(kept_.back().get(), type, values.rows, kWidth);
            if (type == DType::F32)
                be.write(*tensor, values.data.data());
            else
                be.write(*tensor, packed16(values, type).data());
        }
        std::vector<int32_t> table(static_cast<size_t>(pages));
        std::iota(table.rbegin(), table.rend(), 0);
        kept_.push_back(be.allocate(table.size() * sizeof(int32_t)));
        layer.page_table = dense(kept_.back().get(), DType::I32, 1, pages);
        be.write(layer.page_table, table.data());
        return layer;
    }

    Tensor on(Backend& be, const Matrix& values) {
        kept_.push_back(be.allocate(dense_bytes(DType::F32, values.rows, values.cols)));
        const Tensor tensor = dense(kept_.back().get(), DType::F32, values.rows, values.cols);
        be.write(tensor, values.data.data());
        return tensor;
    }

    static Matrix read(Backend& be, Tensor tensor) {
        Matrix values(tensor.rows, tensor.cols);
        be.read(tensor, values.data.data());
        return values;
    }

    static Matrix rope_table(int positions) {
        Matrix table(positions, kShape.head_dim);
        for (int p = 0; p < positions; ++p)
            for (int i = 0; i < kShape.head_dim / 2; ++i) {
                const double angle = p * std::pow(10000.0, -2.0 * i / kShape.head_dim);
                table[p][i] = float(std::cos(angle));
                table[p][kShape.head_dim / 2 + i] = float(std::sin(angle));
            }
        return table;
    }

    Results take(Backend& be, int length, DType type, int window) {
        window_ = window;
        be.reserve({.rows = 64,
                    .widest = kColumns,
                    .context = length + 64,
                    .heads = kShape.heads,
                    .queries = 2,
                    .head_dim = kShape.head_dim});
        const KvLayer cache = make_cache(be, length, type);
        const Tensor rope = on(be, rope_table(length + 8));
        const Tensor qkv = on(be, random_matrix(kRows, kColumns, 3));
        const std::vector<Row> rows = rows_at(length);
        kept_.push_back(be.allocate(rows.size() * sizeof(Row)));
        const Rows block{dense(kept_.back().get(), DType::I32, kRows, kRowInts)};
        be.write(block.block, rows.data());
        be.run(RopeAppend{qkv, rope, block, kShape, cache});
        const Tensor out = on(be, Matrix(kRows, kShape.heads * kShape.head_dim));
        be.run(Attention{out, qkv, block, kShape, cache, kShape.usual_scale(), window_});
        Results results{read(be, out), {}, {}, read(be, qkv)};
        results.quantised = quantised(be, qkv, block, cache);
        results.after_commit = committed(be, length, qkv, rope, cache);
        return results;
    }

    std::vector<BlockI8G32> quantised(Backend& be, Tensor qkv, Rows rows, const KvLayer& cache) {
        const int columns = kShape.heads * kShape.head_dim;
        kept_.push_back(be.allocate(dense_bytes(DType::I8G32, kRows, columns)));
        const Tensor out = dense(kept_.back().get(), DType::I8G32, kRows, columns);
        be.run(Attention{out, qkv, rows, kShape, cache, kShape.usual_scale(), window_});
        std::vector<BlockI8G32> blocks(size_t(kRows * columns / kGroup));
        be.read(out, blocks.data());
        return blocks;
    }

    // Nodes 0, 2 and 3 are accepted: the next row attends to them as committed positions.
    Matrix committed(Backend& be, int length, Tensor qkv, Tensor rope, const KvLayer& cache) {
        std::vector<KvMove> moves;
        for (int node : {0, 2, 3})
            moves.push_back({0, length + kSlots[node], length + int(moves.size())});
        kept_.push_back(be.allocate(sizeof(KvMove) * moves.size()));
        const Tensor block = dense(kept_.back().get(), DType::I32, int(moves.size()), kKvMoveInts);
        be.write(block, moves.data());
        be.run(KvCompact{{&cache, 1}, block});
        const Row next{.position = length + 3, .slot = length + 3, .prefix = length + 3};
        kept_.push_back(be.allocate(sizeof(Row)));
        const Rows row{dense(kept_.back().get(), DType::I32, 1, kRowInts)};
        be.write(row.block, &next);
        const Tensor out = on(be, Matrix(1, kShape.heads * kShape.head_dim));
        be.run(RopeAppend{qkv.row_range(0, 1), rope, row, kShape, cache});
        be.run(
            Attention{out, qkv.row_range(0, 1), row, kShape, cache, kShape.usual_scale(), window_});
        return read(be, out);
    }

    // The row that ends the text, in doubles: its history is the cache from the host and the two
    // rows before it.
    std::vector<double> last_of_text(const Results& results, int length, DType type) const {
        const int at = kRows - kNodes - 1, q_width = kShape.heads * kShape.head_dim;
        const int pages = (length + 64 + kPageSize - 1) / kPageSize;
        Matrix parts[2];
        for (int part = 0; part < 2; ++part) {
            const Matrix cache = rounded(random_matrix(pages * kPageSize, kWidth, part == 0), type);
            Matrix own(kRows, kWidth);
            for (int r = 0; r < kRows; ++r)
                std::copy_n(results.rotated[r] + q_width + part * kWidth, kWidth, own[r]);
            own = rounded(own, type);
            parts[part] = Matrix(length, kWidth);
            for (int p = 0; p < length; ++p) {
                const int row = (pages - 1 - p / kPageSize) * kPageSize + p % kPageSize;
                const float* from = p > length - 1 - (kRows - kNodes)
                                        ? own[p - (length - (kRows - kNodes))]
                                        : cache[row];
                std::copy_n(from, kWidth, parts[part][p]);
            }
        }
        return reference::attention(results.rotated[at], parts[0], parts[1], kShape,
                                    kShape.usual_scale(), window_);
    }

    int window_ = 0;
};

struct Context {
    int length, window;
};

Exact exactly(const Matrix& values) {
    Exact exact(values.rows, values.cols);
    std::copy(values.data.begin(), values.data.end(), exact.data.begin());
    return exact;
}

TEST_P(LongContextTest, HasTheBitsOfThePortableKernels) {
    const auto portable = open_cpu_isa("portable", 2);
    for (const auto& [length, window] :
         {Context{700, 0}, {4200, 0}, {20000, 0}, {5000, 24}, {5000, 1000}, {20000, 4096}})
        for (DType type : {DType::F32, DType::F16}) {
            SCOPED_TRACE(std::to_string(length) + " positions, window " + std::to_string(window) +
                         ", " + name(type));
            const Results got = take(*backend_, length, type, window);
            const Results want = take(*portable, length, type, window);
            EXPECT_TRUE(same_bits(got.rotated, want.rotated));
            // CUDA's kernels sum in their own order in attention that float weights read.
            if (type == DType::F16 && GetParam().name.starts_with("cuda")) {
                EXPECT_LE(nmse(got.attended, exactly(want.attended)), 1e-10);
                EXPECT_LE(nmse(got.after_commit, exactly(want.after_commit)), 1e-10);
            } else {
                EXPECT_TRUE(same_bits(got.attended, want.attended));
                EXPECT_TRUE(same_bits(got.after_commit, want.after_commit));
            }
            EXPECT_EQ(std::memcmp(got.quantised.data(), want.quantised.data(),
                                  want.quantised.size() * sizeof(BlockI8G32)),
                      0);
            const std::vector<double> exact = last_of_text(want, length, type);
            Exact row(1, int(exact.size()));
            row.data = exact;
            Matrix attended(1, row.cols);
            std::copy_n(want.attended[kRows - kNodes - 1], row.cols, attended[0]);
            EXPECT_LE(nmse(attended, row), 1e-10);
        }
}

INSTANTIATE_TEST_SUITE_P(Devices, LongContextTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
