// Blocks of a matmul that share rows: each has some parts of the columns, and the one that comes last
// adds the sums of all in the order of the parts. The sums of the first parts are one by then.
#pragma once

#include "cuda/device/last_block.cuh"
#include "cuda/split.h"

namespace aerie::cuda {

// Steps of the columns that a block has.
struct Share {
    int first, after;
};

// Of so many steps, so many of which are a part.
__device__ inline Share share_of(const Split& split, int steps, int part_steps) {
    if (split.blocks == 1) return {0, steps};
    const int others = int(blockIdx.y) + split.first_parts, first = blockIdx.y ? others - 1 : 0;
    return {first * part_steps, min(others * part_steps, steps)};
}

// Adds a part of the sum; the next one begins.
template <int tiles>
__device__ inline void end_part(float (&total)[tiles][4], float (&part)[tiles][4]) {
#pragma unroll
    for (int n = 0; n < tiles; ++n)
        for (int i = 0; i < 4; ++i) {
            total[n][i] = total[n][i] + part[n][i];
            part[n][i] = 0;
        }
}

// Adds what the other blocks left, of so many threads a float4 of each of `tiles`, to its own.
template <int threads, int tiles>
__device__ inline void add_shares(float (&total)[tiles][4], const float4* sums, unsigned blocks) {
    float own[tiles][4];
#pragma unroll
    for (int n = 0; n < tiles; ++n)
        for (int i = 0; i < 4; ++i) own[n][i] = total[n][i], total[n][i] = 0;
#pragma unroll(tiles > 2 ? 8 / tiles : 4)
    for (unsigned block = 0; block < blocks; ++block)
#pragma unroll
        for (int n = 0; n < tiles; ++n) {
            float4 sum = make_float4(own[n][0], own[n][1], own[n][2], own[n][3]);
            if (block != blockIdx.y) sum = sums[(block * tiles + n) * threads];
            total[n][0] = total[n][0] + sum.x;
            total[n][1] = total[n][1] + sum.y;
            total[n][2] = total[n][2] + sum.z;
            total[n][3] = total[n][3] + sum.w;
        }
}

// Whether this block is the one that goes on, and then with the sums of all that share its rows.
template <int threads = kBlockThreads, int tiles>
__device__ inline bool add_up(float (&total)[tiles][4], const Split& split) {
    if (split.blocks == 1) return true;
    float4* mine = split.sums + size_t(blockIdx.x) * split.blocks * tiles * threads + threadIdx.x;
#pragma unroll
    for (int n = 0; n < tiles; ++n)
        mine[(blockIdx.y * tiles + n) * threads] =
            make_float4(total[n][0], total[n][1], total[n][2], total[n][3]);
    if (!is_last_block(split.arrived + blockIdx.x, split.blocks)) return false;
    add_shares<threads>(total, mine, split.blocks);
    return true;
}

}  // namespace aerie::cuda
