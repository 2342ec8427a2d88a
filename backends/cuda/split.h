// Split-K: how the products of a matmul are divided among blocks, and where these put
// partial sums.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <numeric>

#include "core/quant.h"
#include "cuda/device/packed.cuh"

namespace aerie::cuda {

// Row tiles (of 16 rows) of a matmul's block, which has as many warps.
constexpr int kBlockTiles = 8;
constexpr int kBlockThreads = kBlockTiles * 32;
constexpr int kBlockRows = kBlockTiles * kTileRows;
// A wide block has twice as many, so that many tokens are loaded half as often.
constexpr int kWideTiles = 2 * kBlockTiles;
constexpr int kWideRows = kWideTiles * kTileRows;
constexpr unsigned kRangeBlocks = kWideTiles / kBlockTiles;  // blocks per range of K, if not wide

// Rows of a launch at most, for which there is scratch; more take several launches.
constexpr int kPassRows = 64;
constexpr int kMaxTiles = kPassRows / kTokenTile;
constexpr int kManyTiles = 4;          // token tiles from which on reductions take long
constexpr int kMaxTickets = 4096;      // counters for last_block.cuh outside of matmuls
constexpr int kMaxSplitBlocks = 2048;  // blocks of a matmul whose rows are split, at most
constexpr int kMaxRanges = kMaxSplitBlocks / 2;
constexpr int kMaxDeferredBlocks = 64;  // blocks of rows of a deferred reduction
constexpr size_t kPartialSumBytes =
    size_t(kBlockThreads) * sizeof(float4);  // a block's, for 8 tokens

// Float weights, split as by CUTLASS's stream-K. Blocks of kWideTiles tiles of rows lie one after
// the other, and the K steps of all of them are cut into ranges of the same size, one for each
// multiprocessor, so that all have as much to do. A range is computed by one block of so many
// tiles, or by two of half of them. Within a range, the steps of a block of rows make one partial
// sum; where several ranges have some, these are added in ascending order. So the bits depend on
// the shape and on the number of multiprocessors, and on nothing else.
struct FloatSplitK {
    // Workspace: two partial sums per range, for the first and the last block of rows that it
    // touches.
    float4* sums = nullptr;
    // Counters, for the last block of rows of each range; 0 between launches.
    unsigned* arrived = nullptr;
    unsigned steps = 1;            // K steps of a block of rows
    unsigned all = 1, ranges = 1;  // K steps of all blocks of rows, and their ranges

    // Whether the reduction may be deferred to the kernel that reads the output: there are few
    // enough blocks of rows, and some of them are split.
    bool may_defer() const {
        const unsigned blocks = all / steps;
        return blocks < ranges && blocks <= unsigned(kMaxDeferredBlocks);
    }
    // The first step of a range, counted over all blocks of rows; the range that has such a step.
    __host__ __device__ int begin(int range) const { return int(all * unsigned(range) / ranges); }
    __host__ __device__ int range_of(int step) const {
        return int(((unsigned(step) + 1) * ranges - 1) / all);
    }
};
// The index, in floats, of the partial sums of a token from one range, in a deferred reduction
// (partial_sums.cuh): [range + block of rows][token][row].
__host__ __device__ constexpr int partial_sums_at(int range_and_rows, int token) {
    return (range_and_rows * kPassRows + token) * kWideRows;
}
constexpr unsigned kMinRangeSteps = 8;  // fewer are not worth the partial sums

// Quantised weights. The parts of K (kSumPart columns) are added in the order that all backends
// have. If several blocks have the same rows, they lie along y: the first has first_parts parts,
// the others one each.
struct QuantSplitK {
    // Workspace: the partial sums of each thread, by block of rows, block along y, and 8 tokens.
    float4* sums = nullptr;
    unsigned* arrived = nullptr;  // counters, one per block of rows; 0 between launches
    unsigned blocks = 1;
    int first_parts = 1;
};

// The workspace that a device reserves for split-K, and what else a split depends on. The bits are
// the same however much is reserved.
struct SplitPlan {
    QuantSplitK split;
    int sum_count = 0;  // partial sums in the workspace, of kBlockRows rows and 8 tokens each
    int multiprocessors = 1;
    size_t block_bytes = 0;  // shared memory that a block may have

    FloatSplitK split_floats(int rows, int cols) const {
        FloatSplitK floats{split.sums, split.arrived, unsigned(float_tiles(cols) / kStepTiles)};
        floats.all = unsigned(tiles_of(rows, kWideRows)) * floats.steps;
        floats.ranges = std::min({std::max(floats.all / kMinRangeSteps, 1u), ~0u / floats.all,
                                  unsigned(std::min(multiprocessors, kMaxRanges))});
        // Up to a sixteenth fewer ranges, if their ends then meet those of blocks of rows more
        // often, so that there are fewer partial sums.
        const unsigned blocks = floats.all / floats.steps, most = floats.ranges;
        for (unsigned fewer = most; fewer * 16 >= most * 15; --fewer)
            if (std::gcd(fewer, blocks) > std::gcd(floats.ranges, blocks)) floats.ranges = fewer;
        return floats;
    }
    // The workspace of float splits, counted as sum_count is.
    int float_sum_count(int token_tiles) const {
        return std::min(multiprocessors, kMaxRanges) * 2 * int(kRangeBlocks) * token_tiles;
    }
    // Divides the parts of quantised weights among blocks, if this saves a fifth of the time of the
    // busiest multiprocessor. With many tokens the first block has as many parts as each of the
    // blocks that run at once would have, so that there are fewer partial sums.
    QuantSplitK split_quantised(int row_blocks, int cols, int token_tiles) const {
        const int parts = tiles_of(cols, kSumPart), all = row_blocks * parts;
        const int undivided = tiles_of(row_blocks, multiprocessors) * parts;
        const int divided = tiles_of(all, multiprocessors);
        const bool fits = all <= kMaxSplitBlocks && all * token_tiles <= sum_count;
        QuantSplitK quantised = split;
        if (!fits || divided * 5 > undivided * 4) return quantised;
        if (token_tiles >= kManyTiles)
            quantised.first_parts = std::min(tiles_of(all, multiprocessors * 2), parts - 1);
        quantised.blocks = unsigned(parts - quantised.first_parts + 1);
        return quantised;
    }
};

template <class Kernel>
struct BlockKernel {
    Kernel kernel;
    size_t shared_bytes;
};
template <class Kernel>
struct NamedKernel {
    Kernel kernel;
    size_t shared_bytes;
    const char* name;
};

}  // namespace aerie::cuda
