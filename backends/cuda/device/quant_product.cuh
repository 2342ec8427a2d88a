// What matmuls of quantised weights have in common, whether their rows follow each other or go to
// experts: dot products of 32 elements on the tensor cores, added in the order of core/quant.h.
#pragma once

#include "core/quant.h"
#include "cuda/device/stream.cuh"
#include "cuda/scratch.h"

namespace aerie::cuda {

constexpr int kQuantStepsAhead = 8;
constexpr int kStepWord = int(offsetof(BlockI8G32, q)) / 4;     // where steps begin
constexpr int kPartSteps = kSumPart / (kGroup * kBlockGroups);  // of a part of the sum

// A group of 8 tokens in scratch: 8 bytes a lane, then the scales of the tokens.
__device__ inline std::byte* packed_group(std::byte* packed, int token_tile, int group,
                                          int groups) {
    return packed + (size_t(token_tile) * size_t(groups) + size_t(group)) * kQuantColumnBytes;
}

struct QuantTask {
    const uint4* weight;
    const std::byte* x;  // rows of I8G32
    size_t x_stride;     // bytes
    std::byte* packed;   // the same as pack_columns_kernel makes it, for more than one tile
    int tokens, groups;
};

// What a lane needs of 8 tokens: its part of their steps, and the scales of its two columns.
struct Columns {
    uint2 steps;
    float2 scales;
};

__device__ inline Columns packed_columns(const QuantTask& task, int token_tile, int group) {
    const int lane = int(threadIdx.x) % 32;
    const std::byte* from = packed_group(task.packed, token_tile, group, task.groups);
    return {__ldg(reinterpret_cast<const uint2*>(from) + lane),
            __ldg(reinterpret_cast<const float2*>(from + kTokenTile * kGroup) + lane % 4)};
}

// At most 8 tokens as they come: packing them would take a launch of its own.
__device__ inline Columns plain_columns(const QuantTask& task, int group) {
    const int token = int(threadIdx.x) % 32 / 4, t = int(threadIdx.x) % 4;
    const auto word = [&](int of_token, int index) {
        if (of_token >= task.tokens) return 0u;
        const std::byte* block =
            task.x + size_t(of_token) * task.x_stride + size_t(group) * sizeof(BlockI8G32);
        return __ldg(reinterpret_cast<const unsigned*>(block) + index);
    };
    return {make_uint2(word(token, kStepWord + t), word(token, kStepWord + 4 + t)),
            make_float2(__uint_as_float(word(2 * t, 0)), __uint_as_float(word(2 * t + 1, 0)))};
}

// Tokens that follow each other.
template <int tiles>
struct TokensInOrder {
    __device__ Columns columns(const QuantTask& task, int n, int group) const {
        return tiles == 1 ? plain_columns(task, group) : packed_columns(task, n, group);
    }
};

// How a lane finds its part of a group's 16 x 32 steps, and what they are multiples of.
struct Q8 {
    static constexpr DType kType = DType::Q8_0;
    static constexpr int kWords = 4;  // of 16 bytes a lane, without the scales
    static constexpr int kShift = 0;

    __device__ static uint4 steps(const uint4 (&words)[kWords], int group) { return words[group]; }
};
struct Q4 {
    static constexpr DType kType = DType::Q4_0;
    static constexpr int kWords = 2;
    static constexpr int kShift = 4;  // steps are unpacked as 16 times their value

    __device__ static uint4 steps(const uint4 (&words)[kWords], int group) {
        constexpr unsigned kHigh = 0xf0f0f0f0u;
        const uint4 pair = words[group / 2];
        const unsigned a = group % 2 ? pair.z : pair.x, b = group % 2 ? pair.w : pair.y;
        return make_uint4(a << 4 & kHigh, a & kHigh, b << 4 & kHigh, b & kHigh);
    }
};

__device__ inline unsigned component(const uint4& word, int i) {
    return i == 0 ? word.x : i == 1 ? word.y : i == 2 ? word.z : word.w;
}

// Adds the products of one group and 8 tokens.
template <class Format>
__device__ inline void add_group(float (&total)[4], uint4 steps, unsigned scales,
                                 const Columns& columns) {
    const float2 x_scale = columns.scales;
    int dot[4] = {0, 0, 0, 0};
    mma_s8(dot, steps, columns.steps);
    const float low = from_f16(uint16_t(scales)), high = from_f16(uint16_t(scales >> 16));
    total[0] = total[0] + float(dot[0] >> Format::kShift) * (low * x_scale.x);
    total[1] = total[1] + float(dot[1] >> Format::kShift) * (low * x_scale.y);
    total[2] = total[2] + float(dot[2] >> Format::kShift) * (high * x_scale.x);
    total[3] = total[3] + float(dot[3] >> Format::kShift) * (high * x_scale.y);
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

// One warp: 16 rows, `tiles` times 8 tokens.
template <class Format, int tiles, int steps_ahead, class Tokens>
__device__ void multiply_rows(float (&total)[tiles][4], Ring<steps_ahead, Format::kWords + 1>& ring,
                              const QuantTask& task, int row_tile, const Tokens& tokens) {
    constexpr int kWords = Format::kWords;
    constexpr int kBlockWords = int(quant_block_bytes(Format::kType) / sizeof(uint4));
    const int lane = int(threadIdx.x) % 32;
    const int steps = tiles_of(task.groups, kBlockGroups);
    const uint4* weight = task.weight + size_t(row_tile) * size_t(steps) * kBlockWords;
    const auto start = [&](int place, int step) {
        const uint4* block = weight + size_t(step) * kBlockWords;
#pragma unroll
        for (int i = 0; i < kWords; ++i)
            copy_async(ring.space, place + i * 32, block + i * 32 + lane);
        copy_async(ring.space, place + kWords * 32, block + kWords * 32 + lane / 4);
    };
    float part[tiles][4] = {};
    ring.run(steps, start, [&](int place, int step) {
        if (step % kPartSteps == 0) end_part(total, part);
        uint4 words[kWords];
#pragma unroll
        for (int i = 0; i < kWords; ++i) words[i] = ring.space[place + i * 32];
        const uint4 scales = ring.space[place + kWords * 32];
#pragma unroll
        for (int i = 0; i < kBlockGroups; ++i) {
            const int group = step * kBlockGroups + i;
            if (group >= task.groups) break;
#pragma unroll
            for (int n = 0; n < tiles; ++n)
                add_group<Format>(part[n], Format::steps(words, i), component(scales, i),
                                  tokens.columns(task, n, group));
        }
    });
    end_part(total, part);
}

}  // namespace aerie::cuda
