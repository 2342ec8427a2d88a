// Whether the columns of a matmul are shared out among blocks, and where these leave their sums.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "core/quant.h"
#include "cuda/device/packed.cuh"

namespace aerie::cuda {

// A block of a matmul has so many tiles of 16 rows, and as many warps.
constexpr int kBlockTiles = 8;
constexpr int kBlockThreads = kBlockTiles * 32;
constexpr int kBlockRows = kBlockTiles * kTileRows;
// A wide one reads many tokens for twice as many rows.
constexpr int kWideTiles = 2 * kBlockTiles;

constexpr int kManyTiles = 4;       // of 8 tokens, whose sums take their time
constexpr int kMostTickets = 4096;  // of blocks that wait for each other elsewhere
constexpr int kMostShares = 2048;   // blocks of a matmul that share rows
constexpr size_t kShareBytes = size_t(kBlockThreads) * sizeof(float4);  // and 8 tokens

// The blocks along y are those that share rows, if there are several. The first has so many parts
// of the sum, the others one each.
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

    // Of blocks of rows and so many times 8 tokens: parts are shared out where that spares a fifth
    // of the time of the multiprocessor that has most of them. Of many tokens the first block has
    // as many as each of those that run at once would have, so that fewer sums are left.
    Split of(int row_blocks, int cols, int token_tiles, int block_tiles = kBlockTiles) const {
        const int parts = tiles_of(cols, kSumPart), all = row_blocks * parts;
        const int undivided = tiles_of(row_blocks, multiprocessors) * parts;
        const int divided = tiles_of(all, multiprocessors);
        const bool fits =
            all <= kMostShares && all * token_tiles * (block_tiles / kBlockTiles) <= shares;
        Split its = split;
        if (!fits || divided * 5 > undivided * 4) return its;
        const int at_once = multiprocessors * (kWideTiles / block_tiles);
        if (token_tiles >= kManyTiles)
            its.first_parts = std::min(tiles_of(all, at_once), parts - 1);
        its.blocks = unsigned(parts - its.first_parts + 1);
        return its;
    }
    // Whether blocks of so many rows and bytes would be enough for three multiprocessors in four.
    bool keeps_busy(int row_blocks, const Split& its, size_t bytes) const {
        return bytes <= block_bytes && row_blocks * int(its.blocks) * 4 >= multiprocessors * 3;
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
