// Split-K: how the products of a matmul are divided among blocks, and where these leave
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
constexpr int kShareRows = kWideTiles * kTileRows;
constexpr unsigned kShareBlocks = kWideTiles / kBlockTiles;  // blocks per share, if not wide

// Rows of a launch at most, for which there is scratch; more take several launches.
constexpr int kPassRows = 64;
constexpr int kMostTiles = kPassRows / kTokenTile;
constexpr int kManyTiles = 4;       // token tiles from which on reductions take long
constexpr int kMostTickets = 4096;  // counters for last_block.cuh outside of matmuls
constexpr int kMostShares = 2048;   // blocks of a matmul that share rows, at most
constexpr int kMostEven = kMostShares / 2;
constexpr int kMostLeftBlocks = 64;  // blocks of rows that may leave partial sums to readers
constexpr size_t kShareBytes = size_t(kBlockThreads) * sizeof(float4);  // a block's, for 8 tokens

// Float weights, split as by CUTLASS's stream-K. Blocks of kWideTiles tiles of rows lie one after
// the other, and the K steps of all of them are cut into shares of the same size, one for each
// multiprocessor, so that all have as much to do. A share is computed by one block of so many
// tiles, or by two of half of them. Within a share, the steps of a block of rows make one partial
// sum; where several shares have some, these are added in ascending order. So the bits depend on
// the shape and on the number of multiprocessors, and on nothing else.
struct FloatSplitK {
    // Workspace: two partial sums per share, for the first and the last block of rows that it
    // touches.
    float4* sums = nullptr;
    // Counters, for the last block of rows of each share; 0 between launches.
    unsigned* arrived = nullptr;
    unsigned steps = 1;            // K steps of a block of rows
    unsigned all = 1, shares = 1;  // K steps of all blocks of rows, and their shares

    // Whether the partial sums may be left to the kernel that reads the output: there are few
    // enough blocks of rows, and some of them are split.
    bool may_leave() const {
        const unsigned blocks = all / steps;
        return blocks < shares && blocks <= unsigned(kMostLeftBlocks);
    }
    // The first step of a share, counted over all blocks of rows; the share that has such a step.
    __host__ __device__ int begin(int share) const { return int(all * unsigned(share) / shares); }
    __host__ __device__ int share_of(int step) const {
        return int(((unsigned(step) + 1) * shares - 1) / all);
    }
};
// The index, in floats, of the partial sums of a token that a share leaves to the kernel that reads
// the output (partial_sums.cuh): [share + block of rows][token][row].
__host__ __device__ constexpr int left_sum(int share_and_rows, int token) {
    return (share_and_rows * kPassRows + token) * kShareRows;
}
constexpr unsigned kLeastShareSteps = 8;  // fewer are not worth the partial sums

// Quantised weights. The parts of K (kSumPart columns) are added in the order that all backends
// have. If several blocks share rows, they lie along y: the first has first_parts parts, the others
// one each.
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
    int shares = 0;  // partial sums in the workspace, of kBlockRows rows and 8 tokens each
    int multiprocessors = 1;
    size_t block_bytes = 0;  // shared memory that a block may have

    FloatSplitK evenly(int rows, int cols) const {
        FloatSplitK its{split.sums, split.arrived, unsigned(float_tiles(cols) / kStepTiles)};
        its.all = unsigned(tiles_of(rows, kShareRows)) * its.steps;
        its.shares = std::min({std::max(its.all / kLeastShareSteps, 1u), ~0u / its.all,
                               unsigned(std::min(multiprocessors, kMostEven))});
        // Up to a sixteenth fewer shares, if their ends then meet those of blocks of rows more
        // often, so that fewer partial sums are left.
        const unsigned blocks = its.all / its.steps, most = its.shares;
        for (unsigned fewer = most; fewer * 16 >= most * 15; --fewer)
            if (std::gcd(fewer, blocks) > std::gcd(its.shares, blocks)) its.shares = fewer;
        return its;
    }
    // The workspace of even splits, counted as `shares` is.
    int even_shares(int token_tiles) const {
        return std::min(multiprocessors, kMostEven) * 2 * int(kShareBlocks) * token_tiles;
    }
    // Divides the parts of quantised weights among blocks, if this saves a fifth of the time of the
    // busiest multiprocessor. With many tokens the first block has as many parts as each of the
    // blocks that run at once would have, so that fewer partial sums are left.
    QuantSplitK of(int row_blocks, int cols, int token_tiles) const {
        const int parts = tiles_of(cols, kSumPart), all = row_blocks * parts;
        const int undivided = tiles_of(row_blocks, multiprocessors) * parts;
        const int divided = tiles_of(all, multiprocessors);
        const bool fits = all <= kMostShares && all * token_tiles <= shares;
        QuantSplitK its = split;
        if (!fits || divided * 5 > undivided * 4) return its;
        if (token_tiles >= kManyTiles)
            its.first_parts = std::min(tiles_of(all, multiprocessors * 2), parts - 1);
        its.blocks = unsigned(parts - its.first_parts + 1);
        return its;
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
