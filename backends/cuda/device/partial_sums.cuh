// Partial sums of a split-K matmul of many tokens (FloatSplitK) with a deferred reduction: the
// kernel that reads its output next adds them up where it reads, so no block of the matmul waits
// for the others.
#pragma once

#include <cuda_runtime.h>

#include "cuda/device/norm.cuh"
#include "cuda/device/view.cuh"
#include "cuda/split.h"

namespace aerie::cuda {

// The partial sums of a block of rows: the index of the first (see partial_sums_at), and how many
// ranges of K have some.
struct BlockSums {
    uint16_t first, count;
};

struct PartialSums {
    View<float> out;
    bool accumulate;                            // the sums are added to what `out` holds
    const float *bias, *inverse_scales, *sums;  // bias may be null
    BlockSums blocks[kMaxDeferredBlocks];       // by block of rows; the last is repeated

    // The partial sums of a token from range number `range` of those that have these rows.
    __device__ const float* sums_of(const BlockSums& block, int range, int token) const {
        return sums + partial_sums_at(block.first + range, token);
    }
    // Where the reduction begins. A single range's sum keeps its bits, as in FloatBlock, if it is
    // added to -0.
    __device__ static float begin(const BlockSums& block) {
        return block.count == 1 ? -0.0f : 0.0f;
    }
    // A row's bias, or 0. It is loaded before the partial sums.
    __device__ float bias_of(int row) const { return bias && row < out.cols ? bias[row] : 0.0f; }
    __device__ float added(float before, float sum, float inverse_scale, float row_bias) const {
        sum = sum * inverse_scale;
        if (bias) sum = sum + row_bias;
        return accumulate ? before + sum : sum;
    }

    // Computes a token's outputs `row` and row + 1 (`a`), and those `apart` behind them in the same
    // block of rows (`b`). `row` and `apart` are even.
    __device__ void take(float (&a)[2], float (&b)[2], int token, int row, int apart) const {
        constexpr int kAtOnce = 4;  // ranges that are loaded at once
        const float inverse_scale = inverse_scales[token];
        const float biases[] = {bias_of(row), bias_of(row + 1), bias_of(row + apart),
                                bias_of(row + apart + 1)};
        const BlockSums block = blocks[row / kWideRows];
        const float none = begin(block);
        float added_up[] = {none, none, none, none};
#pragma unroll 1
        for (int range = 0; range < block.count; range += kAtOnce) {
            float2 read[kAtOnce][2];
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) {
                const float* from =
                    sums_of(block, min(range + i, block.count - 1), token) + row % kWideRows;
                read[i][0] = *reinterpret_cast<const float2*>(from);
                read[i][1] = *reinterpret_cast<const float2*>(from + apart);
            }
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) {
                const float four[] = {read[i][0].x, read[i][0].y, read[i][1].x, read[i][1].y};
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    added_up[j] = range + i < block.count ? added_up[j] + four[j] : added_up[j];
            }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            a[i] = added(0, added_up[i], inverse_scale, biases[i]);
            b[i] = added(0, added_up[2 + i], inverse_scale, biases[2 + i]);
        }
    }

    // Completes a row of `out`, which the block has in registers (KeptRow), by its partial sums,
    // and stores it.
    template <int each>
    __device__ void complete(float (&values)[each], int token) const {
        const int thread = int(threadIdx.x);
        const float inverse_scale = inverse_scales[token];
#pragma unroll
        for (int first = 0; first < each; first += kTogether) {
            float added_up[kTogether], biases[kTogether];
#pragma unroll
            for (int j = 0; j < kTogether; ++j)
                biases[j] = bias_of((first + j) * kRowThreads + thread);
            add_ranges(added_up, first * kRowThreads + thread, token);
#pragma unroll
            for (int j = 0; j < kTogether; ++j) {
                const int row = (first + j) * kRowThreads + thread;
                if (row >= out.cols) continue;
                values[first + j] = added(values[first + j], added_up[j], inverse_scale, biases[j]);
                out[token][row] = values[first + j];
            }
        }
    }

  private:
    // Adds up the partial sums of output `row`, and of every kRowThreads further.
    __device__ void add_ranges(float (&added_up)[kTogether], int row, int token) const {
        static_assert(kRowThreads % kWideRows == 0 && kMaxKept <= kMaxDeferredBlocks * kWideRows);
        const auto block = [&](int j) {
            return blocks[row / kWideRows + j * (kRowThreads / kWideRows)];
        };
        int least = 1 << 30, most = 0;
#pragma unroll
        for (int j = 0; j < kTogether; ++j) {
            added_up[j] = begin(block(j));
            least = min(least, int(block(j).count));
            most = max(most, int(block(j).count));
        }
        constexpr int kAhead = 2;  // ranges that are loaded before they are added
        int range = 0;
#pragma unroll 1
        for (; range + kAhead <= least; range += kAhead) {
            float read[kAhead][kTogether];
#pragma unroll
            for (int i = 0; i < kAhead; ++i)
#pragma unroll
                for (int j = 0; j < kTogether; ++j)
                    read[i][j] = sums_of(block(j), range + i, token)[row % kWideRows];
#pragma unroll
            for (int i = 0; i < kAhead; ++i)
#pragma unroll
                for (int j = 0; j < kTogether; ++j) added_up[j] = added_up[j] + read[i][j];
        }
#pragma unroll 1
        for (; range < most; ++range)  // ranges that only some blocks of rows have
#pragma unroll
            for (int j = 0; j < kTogether; ++j)
                if (range < block(j).count)
                    added_up[j] = added_up[j] + sums_of(block(j), range, token)[row % kWideRows];
    }
};

// Takes the place of PartialSums if no reduction is deferred.
struct NoPartialSums {
    template <int each>
    __device__ void complete(float (&)[each], int) const {}
};

}  // namespace aerie::cuda
