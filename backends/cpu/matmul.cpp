// Rows of activations times rows of a weight. Lane j of an output's 16 accumulators takes the inner
// elements j mod 16 in ascending order, fused, and one fixed tree adds the lanes: neither the
// number of columns nor any blocking changes a bit.
#include "cpu/isa_kernels.h"
#include "cpu/tile.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// Weight rows that all columns meet before the next ones come, so that they are read from memory
// once; then the part of the inner dimension of which three columns stay in L1.
constexpr size_t kBlockBytes = size_t(128) << 10;
constexpr int kLeastRows = 16, kMostRows = 256;
constexpr int kInnerBlock = 2048;
constexpr int kMostPartialRows = kBlockBytes / sizeof(Half) / kInnerBlock;

struct Block {
    int row, rows;
    int column;
    int k, inner;
    bool first, last;  // of the inner blocks
    float* partial;    // accumulators between inner blocks, [rows, columns, 16]
};

// Writes R outputs of each of C columns.
template <int R, int C>
[[gnu::always_inline]] inline void finish(const MatmulTask& task, const Tile<R, C>& tile, int row,
                                          int column) {
    float sums[C][R];
    tile.sums(sums);
    for (int c = 0; c < C; ++c) {
        float* out = task.out + size_t(column + c) * task.out_stride + row;
        for (int r = 0; r < R; ++r) {
            float value = sums[c][r];
            if (task.bias) value = value + task.bias[row + r];
            out[r] = task.accumulate ? out[r] + value : value;
        }
    }
}

// The beginnings of the rows of a tile to come: the processor's own prefetch needs a while to see
// that a row is being read, and short rows end before that.
template <int R, class W>
void prefetch_rows(const W* row, size_t stride) {
    constexpr int kTilesAhead = 4, kBytes = 512, kLine = 64;
    for (int r = 0; r < R; ++r) {
        const char* ahead = reinterpret_cast<const char*>(row + (kTilesAhead * R + r) * stride);
        for (int i = 0; i < kBytes; i += kLine) __builtin_prefetch(ahead + i);
    }
}

template <int R, int C, class W>
void multiply_tile(const MatmulTask& task, const Block& block, int row) {
    Tile<R, C> tile;
    const auto partial = [&](int c, int r) {
        return block.partial + ((row + r - block.row) * C + c) * kLanes;
    };
    tile.clear();
    if (!block.first)
        for (int c = 0; c < C; ++c)
            for (int r = 0; r < R; ++r) tile.set(c, r, load(partial(c, r)));
    const W* rows[R];
    const float* columns[C];
    const W* weight = static_cast<const W*>(task.weight) + block.k;
    for (int r = 0; r < R; ++r) rows[r] = weight + size_t(row + r) * size_t(task.inner);
    for (int c = 0; c < C; ++c)
        columns[c] = task.x + size_t(block.column + c) * task.x_stride + block.k;
    if (block.column == 0 && block.k == 0) prefetch_rows<R>(rows[0], size_t(task.inner));
    tile.run(rows, columns, block.inner);
    if (block.last) return finish(task, tile, row, block.column);
    for (int c = 0; c < C; ++c)
        for (int r = 0; r < R; ++r) store(partial(c, r), tile.cell(c, r));
}

// C columns times the rows of the block.
template <int C, class W>
void multiply_columns(const MatmulTask& task, Block block) {
    constexpr int R = tile_rows(C);
    float partial[kMostPartialRows * C * kLanes];
    block.partial = partial;
    for (block.k = 0; block.k < task.inner; block.k += kInnerBlock) {
        const int left = task.inner - block.k;
        block.first = block.k == 0;
        block.last = left <= kInnerBlock;
        block.inner = block.last ? left : kInnerBlock;
        int row = block.row;
        const int end = block.row + block.rows;
        for (; row + R <= end; row += R) multiply_tile<R, C, W>(task, block, row);
        for (; row < end; ++row) multiply_tile<1, C, W>(task, block, row);
    }
}

template <class W>
void multiply(const MatmulTask& task) {
    const size_t fitting = kBlockBytes / (size_t(task.inner) * sizeof(W)) / 4 * 4;
    const int rows = fitting < kLeastRows  ? kLeastRows
                     : fitting > kMostRows ? kMostRows
                                           : int(fitting);
    Block block = {};
    for (block.row = 0; block.row < task.rows; block.row += rows) {
        block.rows = task.rows - block.row < rows ? task.rows - block.row : rows;
        for_column_groups(task.columns, [&](auto count, int column) {
            block.column = column;
            multiply_columns<count.value, W>(task, block);
        });
    }
}

}  // namespace

void matmul(const MatmulTask& task) {
    switch (task.type) {
        case Float::F32:
            return multiply<float>(task);
        case Float::F16:
            return multiply<Half>(task);
        case Float::BF16:
            return multiply<Brain>(task);
    }
}

}  // namespace aerie::cpu::AERIE_ISA
