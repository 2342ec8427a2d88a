// What matmuls of float weights have in common, whether their rows follow each other or go to
// experts: the products of a block.
#pragma once

#include "cuda/device/arithmetic.cuh"
#include "cuda/device/columns.cuh"
#include "cuda/device/stream.cuh"

namespace aerie::cuda {

constexpr int kF32Tokens = 8;

struct FloatTask {
    const uint4* weight;
    const uint2* packed;
    const float* inverse_scales;
    int k_tiles, row_tiles;
    MatmulOutput output;
    Split split;
    float* peaks = nullptr;  // of the row that this makes, for each tile of rows; or null
};

// What a block takes at a time.
template <class Format, int tiles, int row_tiles = kBlockTiles>
struct FloatStep : WeightStep<row_tiles> {
    static constexpr int kColumnWords = tiles * kStepTiles * Format::kParts * 32;
    static constexpr size_t kBytes = WeightStep<row_tiles>::kBytes + kColumnWords * sizeof(uint2);
    SharedArray<uint2, kColumnWords> columns;
};

template <class Format, int tiles, int row_tiles = kBlockTiles>
using FloatRing = Ring<FloatStep<Format, tiles, row_tiles>,
                       row_tiles == kBlockTiles ? kRingBytes : kWideRingBytes>;

// The 16 bytes of packed columns that a thread copies of each step, some of them; row_of(token)
// names the columns.
template <class Format, int tiles, int row_tiles, class RowOf>
struct FloatColumns {
    static constexpr int kTiles = tiles, kRowTiles = row_tiles;
    static constexpr bool kLoopsByParts = true;
    using Step = FloatStep<Format, tiles, row_tiles>;
    using Ring = FloatRing<Format, tiles, row_tiles>;
    static constexpr int kPieces = Step::kColumnWords / 2;
    static constexpr int kEach = tiles_of(kPieces, Step::kThreads);
    const float* inverse_scales;
    const RowOf& row_of;
    const uint4* from[kEach];

    __device__ FloatColumns(const FloatTask& task, const RowOf& row_of)
        : inverse_scales(task.inverse_scales), row_of(row_of) {
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const int piece = i * Step::kThreads + int(threadIdx.x);
            const int part = piece / 16 % Format::kParts;
            const int k_tile = piece / (16 * Format::kParts) % kStepTiles;
            const int tile = min(piece / (16 * Format::kParts * kStepTiles), tiles - 1);
            const int row = row_of(tile * kTokenTile + piece % 16 / 2);
            from[i] = reinterpret_cast<const uint4*>(
                task.packed + column_place<Format>(row / kTokenTile, k_tile, task.k_tiles, part) +
                row % kTokenTile * 4 + piece % 2 * 2);
        }
    }
    __device__ void begin() const {}
    __device__ void copy(Step& to, int step) const {
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const int piece = i * Step::kThreads + int(threadIdx.x);
            if (piece < kPieces)
                copy_async(to.columns, piece * 2,
                           from[i] + step * (kStepTiles * Format::kParts * 16));
        }
    }
    __device__ void begin_part(int) const {}
    // A lane's part of 8 tokens, of one of the tiles of a step.
    __device__ uint2 get(Step& step, int, int token_tile, int k, int part) const {
        const int place = (token_tile * kStepTiles + k) * Format::kParts + part;
        return step.columns[place * 32 + int(threadIdx.x) % 32];
    }
    __device__ float inverse_scale(int token) const { return inverse_scales[row_of(token)]; }
};

// The tiles that a warp has of those of a block: with many tokens two of them, and half of the
// tokens, so that it reads less of both.
template <int tiles>
struct FloatShare {
    static constexpr int kRowTiles = tiles == 8 ? 2 : 1, kTokenTiles = tiles / kRowTiles;
    int row_tile = int(threadIdx.x) / 32 / kRowTiles * kRowTiles;
    int token_tile = int(threadIdx.x) / 32 % kRowTiles * kTokenTiles;
};

// A block: so many tiles of rows, and `tiles` times 8 tokens.
template <class Format, class Columns>
__device__ inline void multiply_floats(const FloatTask& task, Columns& columns) {
    constexpr int tiles = Columns::kTiles, row_tiles = Columns::kRowTiles;
    using Its = FloatShare<tiles>;
    using Step = typename Columns::Step;
    constexpr int kPartSteps = kSumPart / (kStepTiles * kFloatTileCols);
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int first_tile = int(blockIdx.x) * row_tiles;
    const int copied_tile = min(first_tile + warp, task.row_tiles - 1);
    const uint4* weight = task.weight + size_t(copied_tile) * size_t(task.k_tiles) * 32 + lane;
    const Its its;
    const bool has_rows = first_tile + its.row_tile < task.row_tiles;
    const Share share = share_of(task.split, task.k_tiles / kStepTiles, kPartSteps);
    float total[tiles][4] = {}, part[tiles][4] = {};
    const auto copy_weights = [&](Step& to, int step) {
#pragma unroll
        for (int i = 0; i < kStepTiles; ++i)
            stream_async(to.weight, (warp * kStepTiles + i) * 32 + lane,
                         weight + (step * kStepTiles + i) * 32);
    };
    const auto begin_part = [&](int step) {
        end_part(total, part);
        columns.begin_part(step);
    };
    const auto take = [&](Step& from, int step) {
        if (!has_rows) return;
#pragma unroll
        for (int k = 0; k < kStepTiles; ++k) {
            uint4 a[Its::kRowTiles];
#pragma unroll
            for (int r = 0; r < Its::kRowTiles; ++r)
                a[r] = from.weight[((its.row_tile + r) * kStepTiles + k) * 32 + lane];
#pragma unroll
            for (int n = 0; n < Its::kTokenTiles; ++n)
#pragma unroll
                for (int p = 0; p < Format::kParts; ++p) {
                    const uint2 b = columns.get(from, step, its.token_tile + n, k, p);
#pragma unroll
                    for (int r = 0; r < Its::kRowTiles; ++r)
                        Format::multiply(part[r * Its::kTokenTiles + n], a[r], b);
                }
        }
    };
    launch_shared<typename Columns::Ring>().template run<kPartSteps>(share, copy_weights, columns,
                                                                     begin_part, take);
    end_part(total, part);
    if (!add_up<Step::kThreads>(total, task.split)) return;
#pragma unroll
    for (int i = 0; i < tiles; ++i) {
        const int n = its.token_tile + i % Its::kTokenTiles;
        const int token = n * kTokenTile + lane % 4 * 2;
        for (int j = 0; j < 4; ++j)
            total[i][j] = total[i][j] * columns.inverse_scale(token + j % 2);
    }
    if constexpr (tiles == 1)
        if (task.output.is_rotated()) return put_rotated(task.output, total[0]);
    unsigned most = 0;
#pragma unroll
    for (int i = 0; i < tiles; ++i)
        most = max(most, task.output.put_tile(its.token_tile + i % Its::kTokenTiles,
                                              first_tile + its.row_tile + i / Its::kTokenTiles,
                                              total[i]));
    if constexpr (tiles == 1)
        if (task.peaks && has_rows) leave_peak(task.peaks + first_tile + its.row_tile, most);
}
// Of the tokens that row_of(token) names, in scratch.
template <class Format, int tiles, int row_tiles = kBlockTiles, class RowOf>
__device__ inline void multiply_packed(const FloatTask& task, const RowOf& row_of) {
    FloatColumns<Format, tiles, row_tiles, RowOf> columns(task, row_of);
    multiply_floats<Format>(task, columns);
}

// One warp: a lane is an output row and takes the inner elements in ascending order. Of kF32Tokens
// tokens from `first` on, whose rows of x row_of tells, also beyond the last one.
template <class Row>
__device__ inline void multiply_f32(const MatmulOutput& output, const View<const float>& x,
                                    const float* weight, int first, const Row& row_of) {
    const int lane = int(threadIdx.x);
    const float* strip = weight + size_t(blockIdx.x) * size_t(x.cols) * kF32Rows + lane;
    const float* token[kF32Tokens];
    float sums[kF32Tokens] = {};
#pragma unroll
    for (int c = 0; c < kF32Tokens; ++c) token[c] = x[row_of(first + c)];
#pragma unroll 4
    for (int k = 0; k < x.cols; ++k) {
        const float w = __ldg(strip + size_t(k) * kF32Rows);
#pragma unroll
        for (int c = 0; c < kF32Tokens; ++c) sums[c] = __fmaf_rn(w, token[c][k], sums[c]);
    }
    const int place = int(blockIdx.x) * kF32Rows + lane, row = output.order.row(place);
#pragma unroll
    for (int c = 0; c < kF32Tokens; ++c) {
        float value = sums[c];
        if (output.gated) {  // the other half's row is 8 lanes away
            value = silu(sums[c]) * __shfl_xor_sync(kAllLanes, sums[c], kTileRows / 2);
            if (place % kTileRows >= kTileRows / 2) continue;
        }
        if (row >= 0) output.put(first + c, row, value);
    }
}

}  // namespace aerie::cuda
