// Float weights times f32 activations. A lane is one output row and takes the inner elements in
// ascending order, fused: neither the number of columns nor any blocking changes a bit.
#include "cpu/columns.h"
#include "cpu/isa_kernels.h"
#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// A tile's accumulators fill the registers beside one weight and one activation: at most 12
// columns, of one strip or of several side by side. If columns are few, memory is the limit, and it
// serves several streams faster than one.
constexpr int kTileSums = (kRegisters - kParts - 1) / kParts;
constexpr int kMaxTileColumns = 12;
constexpr int tile_columns(int strips) {
    return kTileSums / strips < kMaxTileColumns ? kTileSums / strips : kMaxTileColumns;
}

// Inner elements of a strip that are multiplied by all columns before the next ones: they stay in
// L1.
constexpr int kChunk = 256;

// How far ahead weights are prefetched, so that memory is never idle.
constexpr int kPrefetchBytes = 1024;

// Multiplies a chunk of R strips by C columns.
template <class W, int R, int C>
void multiply_chunk(float (*const (&sums)[R])[kLanes], const W* strips, size_t strip_size,
                    const float* x, size_t x_stride, int count) {
    F32x16 acc[R][C];
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) acc[r][c] = load(sums[r][c]);
    for (int k = 0; k < count; ++k, strips += kLanes, ++x)
        for (int r = 0; r < R; ++r) {
            const W* weight = strips + size_t(r) * strip_size;
            __builtin_prefetch(reinterpret_cast<const char*>(weight) + kPrefetchBytes);
            const F32x16 w = load(weight);
            for (int c = 0; c < C; ++c)
                acc[r][c] = held(fma(w, splat(x[size_t(c) * x_stride]), acc[r][c]));
        }
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) store(sums[r][c], acc[r][c]);
}

template <class W, int R>
void multiply_strips(const MatmulTask& task, int row) {
    const size_t strip_size = size_t(task.inner) * kLanes;
    const W* strips = static_cast<const W*>(task.weight) + size_t(row / kStripRows) * strip_size;
    alignas(64) float sums[R][kMaxColumns][kLanes];
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < task.columns; ++c) store(sums[r][c], splat(0.0f));
    for (int k = 0; k < task.inner; k += kChunk) {
        const int count = task.inner - k < kChunk ? task.inner - k : kChunk;
        for_even_columns<tile_columns(R)>(task.columns, [&](auto c, int column) {
            float(*tile[R])[kLanes];
            for (int r = 0; r < R; ++r) tile[r] = sums[r] + column;
            multiply_chunk<W, R, c.value>(tile, strips + size_t(k) * kLanes, strip_size,
                                          task.x + size_t(column) * task.x_stride + k,
                                          task.x_stride, count);
        });
    }
    for (int r = 0; r < R; ++r)
        write_strip(task.output, sums[r], row + r * kStripRows, task.rows, task.columns);
}

template <class W>
void multiply(const MatmulTask& task) {
    int row = 0;
    const auto in_tiles_of = [&](auto strips) {
        constexpr int kStrips = strips.value;
        // Strips are taken together only if that does not split these columns into narrower tiles.
        if (tile_columns(kStrips) < tile_columns(1) && tile_columns(kStrips) < task.columns) return;
        for (; task.rows - row > (kStrips - 1) * kStripRows; row += kStrips * kStripRows)
            multiply_strips<W, kStrips>(task, row);
    };
    in_tiles_of(Constant<4>());
    in_tiles_of(Constant<2>());
    in_tiles_of(Constant<1>());
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
