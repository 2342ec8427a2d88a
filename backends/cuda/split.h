// How matmuls are shared out among blocks, and where these leave sums of columns.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <numeric>

#include "core/quant.h"
#include "cuda/device/packed.cuh"

namespace aerie::cuda {

// A block of a matmul has so many tiles of 16 rows, and as many warps.
constexpr int kBlockTiles = 8;
constexpr int kBlockThreads = kBlockTiles * 32;
constexpr int kBlockRows = kBlockTiles * kTileRows;
// A wide one reads many tokens for twice as many.
constexpr int kWideTiles = 2 * kBlockTiles;
constexpr int kShareRows = kWideTiles * kTileRows;
constexpr unsigned kShareBlocks = kWideTiles / kBlockTiles;  // that are not wide

constexpr int kPassRows = 64;  // most rows that scratch is kept for; more come in several launches
constexpr int kMostTiles = kPassRows / kTokenTile;
constexpr int kManyTiles = 4;       // of 8 tokens, whose sums take their time
constexpr int kMostTickets = 4096;  // of blocks that wait for each other elsewhere
constexpr int kMostShares = 2048;   // blocks of a matmul that share rows
constexpr int kMostEven = kMostShares / 2;
constexpr int kMostLeftBlocks = 64;  // of rows, whose sums may be left to other kernels
constexpr size_t kShareBytes = size_t(kBlockThreads) * sizeof(float4);  // and 8 tokens

// Float weights. Blocks of kWideTiles tiles of rows lie one after the other, and the steps of all
// of them are cut into shares of the same size, one for each multiprocessor: so each has as much to
// do as any other. A share takes one block of so many tiles, or two of half of them. In a share,
// the columns of a block of rows are one sum; where several shares have some, these are added in
// their order. So the bits depend on the shape and on how many multiprocessors there are, and on
// nothing else.
struct EvenSplit {
    float4* sums = nullptr;  // of two blocks of rows of each share: its first, and its last one
    unsigned* arrived = nullptr;  // at the last block of rows of each share; 0 between launches
    unsigned steps = 1;           // of the columns of a block of rows
    unsigned all = 1, shares = 1;

    // Whether what each share has can be left: then there is room, and shares that wait for others.
    bool may_leave() const {
        const unsigned blocks = all / steps;
        return blocks < shares && blocks <= unsigned(kMostLeftBlocks);
    }
    // Its first step, of all; and which one has a step.
    __host__ __device__ int begin(int share) const { return int(all * unsigned(share) / shares); }
    __host__ __device__ int share_of(int step) const {
        return int(((unsigned(step) + 1) * shares - 1) / all);
    }
};
// Where the sums of a token lie that a share leaves for the kernel that reads them next
// (left_sums.cuh), in floats: [share + block of rows][token][row].
__host__ __device__ constexpr int left_sum(int share_and_rows, int token) {
    return (share_and_rows * kPassRows + token) * kShareRows;
}
constexpr unsigned kLeastShareSteps = 8;  // fewer are not worth the sums

// Quantised weights, whose parts are added in an order that all backends have. The blocks along y
// are those that share rows, if there are several. The first has so many parts of the sum, the
// others one each.
struct Split {
    float4* sums = nullptr;       // of each block of rows and y, and 8 tokens, those of each thread
    unsigned* arrived = nullptr;  // at each block of rows; 0 between launches
    unsigned blocks = 1;
    int first_parts = 1;
};

// What a device reserves for it; the bits are the same however much that is.
struct SplitPlan {
    Split split;
    int shares = 0;  // that there is room for, of kBlockRows and 8 tokens each
    int multiprocessors = 1;
    size_t block_bytes = 0;  // of shared memory, that a block may have

    EvenSplit evenly(int rows, int cols) const {
        EvenSplit its{split.sums, split.arrived, unsigned(float_tiles(cols) / kStepTiles)};
        its.all = unsigned(tiles_of(rows, kShareRows)) * its.steps;
        its.shares = std::min({std::max(its.all / kLeastShareSteps, 1u), ~0u / its.all,
                               unsigned(std::min(multiprocessors, kMostEven))});
        // A sixteenth fewer at most, if these and the blocks of rows end together more often: then
        // fewer sums are left.
        const unsigned blocks = its.all / its.steps, most = its.shares;
        for (unsigned fewer = most; fewer * 16 >= most * 15; --fewer)
            if (std::gcd(fewer, blocks) > std::gcd(its.shares, blocks)) its.shares = fewer;
        return its;
    }
    // Room that they want, as `shares` counts it.
    int even_shares(int token_tiles) const {
        return std::min(multiprocessors, kMostEven) * 2 * int(kShareBlocks) * token_tiles;
    }
    // Of blocks of rows and so many times 8 tokens: parts are shared out where that spares a fifth
    // of the time of the multiprocessor that has most of them. Of many tokens the first block has
    // as many as each of those that run at once would have, so that fewer sums are left.
    Split of(int row_blocks, int cols, int token_tiles) const {
        const int parts = tiles_of(cols, kSumPart), all = row_blocks * parts;
        const int undivided = tiles_of(row_blocks, multiprocessors) * parts;
        const int divided = tiles_of(all, multiprocessors);
        const bool fits = all <= kMostShares && all * token_tiles <= shares;
        Split its = split;
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
