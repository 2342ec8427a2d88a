// Split-K: the blocks of a matmul with the same rows each have a range of K, and the last to
// arrive adds the partial sums of all in ascending order of K.
#pragma once

#include "cuda/device/last_block.cuh"
#include "cuda/split.h"

namespace aerie::cuda {

// The K steps of a block.
struct StepRange {
    int first, after;
};

// The K steps of this block, of `steps` in all; a part of K (kSumPart columns) has `part_steps`.
__device__ inline StepRange range_of(const QuantSplitK& split, int steps, int part_steps) {
    if (split.blocks == 1) return {0, steps};
    const int others = int(blockIdx.y) + split.first_parts, first = blockIdx.y ? others - 1 : 0;
    return {first * part_steps, min(others * part_steps, steps)};
}

// Adds the accumulators of a part of K to the total, and clears them for the next part.
template <int tiles>
__device__ inline void add_part(float (&total)[tiles][4], float (&part)[tiles][4]) {
#pragma unroll
    for (int n = 0; n < tiles; ++n)
        for (int i = 0; i < 4; ++i) {
            total[n][i] = total[n][i] + part[n][i];
            part[n][i] = 0;
        }
}

template <int tiles>
__device__ inline void clear(float (&sums)[tiles][4]) {
#pragma unroll
    for (int n = 0; n < tiles; ++n)
        for (float& sum : sums[n]) sum = 0;
}

// The reduction across blocks. Each of the `blocks` with the same rows, number `mine` of them,
// stores its accumulators in scratch, a float4 per thread and tile; place(block) is the block's
// index there, counted in blocks. Returns true in the last block to arrive: `total` is then the sum
// over all blocks in ascending order. The other blocks are done.
template <int threads, int tiles, class Place>
__device__ inline bool add_up(float (&total)[tiles][4], float4* sums, unsigned* arrived,
                              unsigned blocks, unsigned mine, const Place& place) {
    float4* const of_thread = sums + threadIdx.x;
    const auto at = [&](unsigned block, int n) -> float4& {
        return of_thread[(place(block) * unsigned(tiles) + unsigned(n)) * threads];
    };
#pragma unroll
    for (int n = 0; n < tiles; ++n)
        at(mine, n) = make_float4(total[n][0], total[n][1], total[n][2], total[n][3]);
    if (!is_last_block(arrived, blocks)) return false;
    constexpr int kTogether = tiles < 4 ? tiles : 4;  // more would need too many registers
#pragma unroll
    for (int first = 0; first < tiles; first += kTogether) {
        float stored[kTogether][4];
#pragma unroll
        for (int n = 0; n < kTogether; ++n)
            for (int i = 0; i < 4; ++i) stored[n][i] = total[first + n][i], total[first + n][i] = 0;
#pragma unroll(tiles > 2 ? 8 / tiles : 4)
        for (unsigned block = 0; block < blocks; ++block)
#pragma unroll
            for (int n = 0; n < kTogether; ++n) {
                float4 sum = make_float4(stored[n][0], stored[n][1], stored[n][2], stored[n][3]);
                if (block != mine) sum = at(block, first + n);
                float(&added)[4] = total[first + n];
                added[0] = added[0] + sum.x;
                added[1] = added[1] + sum.y;
                added[2] = added[2] + sum.z;
                added[3] = added[3] + sum.w;
            }
    }
    return true;
}
template <int tiles>
__device__ inline bool add_up(float (&total)[tiles][4], const QuantSplitK& split) {
    return split.blocks == 1 ||
           add_up<kBlockThreads>(total, split.sums, split.arrived + blockIdx.x, split.blocks,
                                 blockIdx.y,
                                 [&](unsigned block) { return blockIdx.x * split.blocks + block; });
}

}  // namespace aerie::cuda
