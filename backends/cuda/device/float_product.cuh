// The products of float weights, for matmul.cu and expert_matmul.cu.
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
    FloatSplitK split;
    // Receives the amax of the only row, one value per tile of 16 outputs; or null.
    float* amax = nullptr;
};

// A stage of a block: weights, and packed activations (columns).
template <class Format, int tiles, int row_tiles = kBlockTiles>
struct FloatStep : WeightStep<row_tiles> {
    static constexpr int kColumnWords = tiles * kStepTiles * Format::kParts * 32;
    static constexpr size_t kBytes = WeightStep<row_tiles>::kBytes + kColumnWords * sizeof(uint2);
    SharedArray<uint2, kColumnWords> columns;
};

template <class Format, int tiles, int row_tiles = kBlockTiles>
using FloatRing = Ring<FloatStep<Format, tiles, row_tiles>,
                       row_tiles == kBlockTiles ? kRingBytes : kWideRingBytes>;

// Copies the packed columns of each step: a thread has kEach pieces of 16 bytes. row_of(token) is
// the number of a token's column in scratch.
template <class Format, int tiles, int row_tiles, class RowOf>
struct FloatColumns {
    static constexpr int kTiles = tiles, kRowTiles = row_tiles;
    static constexpr bool kMakesParts = false;
    using Step = FloatStep<Format, tiles, row_tiles>;
    using Ring = FloatRing<Format, tiles, row_tiles>;
    static constexpr int kPieces = Step::kColumnWords / 2;
    static constexpr int kEach = tiles_of(kPieces, Step::kThreads);
    const float* inverse_scales;
    const RowOf& row_of;
    const uint4* from[kEach];
    int steps, column = 0;  // steps in all, and the next to be copied

    __device__ FloatColumns(const FloatTask& task, const RowOf& row_of)
        : inverse_scales(task.inverse_scales), row_of(row_of), steps(int(task.split.steps)) {
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
    __device__ void begin_at(int step) {
        column = step;
    }
    __device__ void begin() const {}
    __device__ void copy(Step& to, int) {
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const int piece = i * Step::kThreads + int(threadIdx.x);
            if (piece < kPieces)
                copy_async(to.columns, piece * 2,
                           from[i] + column * (kStepTiles * Format::kParts * 16));
        }
        if (++column == steps) column = 0;
    }
    // A lane's words of 8 tokens, for one of the K tiles of a step and one of the parts.
    __device__ uint2 get(Step& step, int, int token_tile, int k, int part) const {
        const int place = (token_tile * kStepTiles + k) * Format::kParts + part;
        return step.columns[place * 32 + int(threadIdx.x) % 32];
    }
    __device__ float inverse_scale(int token) const {
        return inverse_scales[row_of(token)];
    }
};

// The tiles of a block that a warp has. With 64 tokens it has two row tiles and half of the tokens,
// so that it reads less of both.
template <int tiles>
struct WarpTiles {
    static constexpr int kRowTiles = tiles == 8 ? 2 : 1, kTokenTiles = tiles / kRowTiles;
    int row_tile = int(threadIdx.x) / 32 / kRowTiles * kRowTiles;
    int token_tile = int(threadIdx.x) / 32 % kRowTiles * kTokenTiles;
};

// The product of a block over its range of K steps (FloatSplitK): kRowTiles tiles of rows at a
// time, and kTiles times 8 tokens. A block of an expert has all of K, and sums it in the ranges
// that a matmul of the same shape would have, so that the bits are the same.
template <class Format, class Columns, bool of_expert>
class FloatBlock {
    static constexpr int tiles = Columns::kTiles, kRowTiles = Columns::kRowTiles;
    static constexpr int kHalves = kWideTiles / kRowTiles;
    static constexpr bool kDefers = tiles >= kManyTiles && !of_expert;
    using Tiles = WarpTiles<tiles>;
    using Step = typename Columns::Step;

  public:
    __device__ FloatBlock(const FloatTask& task, Columns& columns)
        : task_(task), columns_(columns) {}

    __device__ void run() {
        // The weights to be copied next.
        int column = range_.first - begin_;
        int tile = min(first_tile(rows()) + warp_, task_.row_tiles - 1);
        const uint4* weight = strip_of(tile);
        columns_.begin_at(column);
        const auto copy_weights = [&](Step& to, int) {
#pragma unroll
            for (int i = 0; i < kStepTiles; ++i)
                stream_async(to.weight, (warp_ * kStepTiles + i) * 32 + lane_,
                             weight + (column * kStepTiles + i) * 32);
            if (++column == steps_) {
                column = 0;
                tile = min(tile + kWideTiles, task_.row_tiles - 1);
                weight = strip_of(tile);
            }
        };
        const auto take = [&](Step& from, int step) { multiply(from, step - begin_); };
        Stream stream(launch_shared<typename Columns::Ring>(), range_, copy_weights, columns_,
                      take);
        float total[tiles][4] = {};
        while (stream.has_more()) {
            has_rows_ = first_tile(rows()) + warp_tiles_.row_tile < task_.row_tiles;
            int end = min(begin_ + steps_, range_.after);
            if (of_expert) end = min(end, split_.begin(split_.range_of(stream.step()) + 1));
            take_columns(stream, end);
            if (of_expert) {
                add_part(total, part_);
                continue;
            }
            if (kDefers && task_.output.defers_reduction)
                store_partial_sums();
            else if (has_sums())
                put(part_);
            clear(part_);
            begin_ += steps_;
        }
        if (of_expert) put(total);
    }

  private:
    __device__ int rows() const {
        return begin_ / steps_;
    }  // number of the current block of rows
    // The first row tile that this block has in a block of rows.
    __device__ int first_tile(int rows) const {
        return (rows * kHalves + half_) * kRowTiles;
    }
    // A lane's first words of a row tile.
    __device__ const uint4* strip_of(int tile) const {
        return task_.weight + size_t(tile) * size_t(task_.k_tiles) * 32 + lane_;
    }

    // Multiplies the steps before `end`, which all belong to the current rows.
    template <class Steps>
    __device__ void take_columns(Steps& stream, int end) {
        if constexpr (Columns::kMakesParts)
            while (stream.step() < end) {
                const int column = stream.step() - begin_, part = column / Columns::kPartSteps;
                columns_.make_part(part);
                stream.take_until(min(end, begin_ + (part + 1) * Columns::kPartSteps));
            }
        else
            stream.take_until(end);
    }

    __device__ void multiply(Step& from, int column) {
        if (!has_rows_) return;
#pragma unroll
        for (int k = 0; k < kStepTiles; ++k) {
            uint4 a[Tiles::kRowTiles];
#pragma unroll
            for (int r = 0; r < Tiles::kRowTiles; ++r)
                a[r] = from.weight[((warp_tiles_.row_tile + r) * kStepTiles + k) * 32 + lane_];
#pragma unroll
            for (int n = 0; n < Tiles::kTokenTiles; ++n)
#pragma unroll
                for (int p = 0; p < Format::kParts; ++p) {
                    const uint2 b = columns_.get(from, column, warp_tiles_.token_tile + n, k, p);
#pragma unroll
                    for (int r = 0; r < Tiles::kRowTiles; ++r)
                        Format::multiply(part_[r * Tiles::kTokenTiles + n], a[r], b);
                }
        }
    }

    // Reduces the sums of the current rows. Returns whether this block has the final sums, and so
    // has to run the epilogue. The workspace has two places per range: these rows are the last of
    // the first range that has some of them, and the first of all others.
    __device__ bool has_sums() {
        const int first = split_.range_of(begin_), last = split_.range_of(begin_ + steps_ - 1);
        if (first == last) return true;
        const auto place = [&](unsigned i) {
            return ((unsigned(first) + i) * 2 + (i == 0 ? 1 : 0)) * kHalves + unsigned(half_);
        };
        return add_up<Step::kThreads>(part_, split_.sums, split_.arrived + first * kHalves + half_,
                                      unsigned(last - first + 1), unsigned(number_ - first), place);
    }

    // The epilogue: takes the scales of the activations out of the sums, then rotates or stores.
    __device__ void put(float (&sums)[tiles][4]) const {
        const int first = first_tile(rows());
#pragma unroll
        for (int i = 0; i < tiles; ++i) {
            const int token =
                (warp_tiles_.token_tile + i % Tiles::kTokenTiles) * kTokenTile + lane_ % 4 * 2;
            for (int j = 0; j < 4; ++j)
                sums[i][j] = sums[i][j] * columns_.inverse_scale(token + j % 2);
        }
        if constexpr (tiles == 1)
            if (task_.output.is_rotated()) return put_rotated(task_.output, first, sums[0]);
        const unsigned most = task_.output.template put_tiles<Tiles::kTokenTiles, of_expert>(
            sums, warp_tiles_.token_tile, first + warp_tiles_.row_tile);
        if (tiles == 1 && task_.amax && has_rows_)
            store_amax(task_.amax + first + warp_tiles_.row_tile, most);
    }

    // Stores the partial sums of a deferred reduction (partial_sums_at): token by token, the rows
    // of a block side by side.
    __device__ void store_partial_sums() const {
        const int row = (half_ * kRowTiles + warp_tiles_.row_tile) * kTileRows + lane_ / 4;
        float* const sums = reinterpret_cast<float*>(split_.sums);
#pragma unroll
        for (int i = 0; i < tiles; ++i) {
            const int token =
                (warp_tiles_.token_tile + i % Tiles::kTokenTiles) * kTokenTile + lane_ % 4 * 2;
            for (int j = 0; j < 4; ++j)
                sums[partial_sums_at(number_ + rows(), token + j % 2) + row +
                     i / Tiles::kTokenTiles * kTileRows + j / 2 * (kTileRows / 2)] = part_[i][j];
        }
    }

    __device__ StepRange range() const {
        if (of_expert) return {number_ * steps_, (number_ + 1) * steps_};
        return {split_.begin(number_), split_.begin(number_ + 1)};
    }

    const FloatTask& task_;
    Columns& columns_;
    const FloatSplitK& split_ = task_.split;
    const int lane_ = int(threadIdx.x) % 32, warp_ = int(threadIdx.x) / 32;
    const int number_ = int(blockIdx.x) / kHalves, half_ = int(blockIdx.x) % kHalves;
    const int steps_ = int(split_.steps);
    const Tiles warp_tiles_;
    const StepRange range_ = range();
    int begin_ = range_.first / steps_ * steps_;  // first step of the current rows
    bool has_rows_ = false;
    float part_[tiles][4] = {};
};

template <class Format, bool of_expert = false, class Columns>
__device__ inline void multiply_floats(const FloatTask& task, Columns& columns) {
    FloatBlock<Format, Columns, of_expert>(task, columns).run();
}
// The same with packed columns in scratch, of which row_of(token) is a token's.
template <class Format, int tiles, int row_tiles = kBlockTiles, bool of_expert = false, class RowOf>
__device__ inline void multiply_packed(const FloatTask& task, const RowOf& row_of) {
    FloatColumns<Format, tiles, row_tiles, RowOf> columns(task, row_of);
    multiply_floats<Format, of_expert>(task, columns);
}

// The product of F32 weights, by one warp: a lane has an output row and takes K in ascending order.
// Tokens are kF32Tokens from `first` on; row_of(token) is a token's row of x, also beyond the last
// token.
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
        if (output.gated) {  // gate and up are 8 lanes apart
            value = silu(sums[c]) * __shfl_xor_sync(kAllLanes, sums[c], kTileRows / 2);
            if (place % kTileRows >= kTileRows / 2) continue;
        }
        if (row >= 0) output.put(first + c, row, value);
    }
}

}  // namespace aerie::cuda
