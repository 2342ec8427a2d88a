// What matmuls of quantised weights have in common, whether their rows follow each other or go to
// experts: dot products of 32 elements on the tensor cores, added in the order of core/quant.h.
#pragma once

#include "core/quant.h"
#include "cuda/device/quant_format.cuh"
#include "cuda/device/stream.cuh"
#include "cuda/scratch.h"

namespace aerie::cuda {

constexpr int kGroupsAhead = 32;
constexpr int kStepWord = int(offsetof(BlockI8G32, q)) / 4;  // where steps begin
constexpr int kSumsWord = int(offsetof(BlockI8G32, sums)) / 4;

// A ring for so many groups of weights.
template <class Format, int groups_ahead>
using QuantRing = Ring<groups_ahead / Format::kLayout.groups, Format::kLayout.words()>;

// A group of 8 tokens in scratch: 8 bytes a lane, then for each two tokens their scales and the
// sums of their steps.
__device__ inline std::byte* packed_group(std::byte* packed, int token_tile, int group,
                                          int groups) {
    return packed + (size_t(token_tile) * size_t(groups) + size_t(group)) * kQuantColumnBytes;
}

// The scale of one of the tokens, and so many floats further the sum of its steps.
constexpr int kPackedSum = 2;
__device__ inline float* packed_scale(std::byte* group, int column) {
    return reinterpret_cast<float*>(group + kTokenTile * kGroup) + column / 2 * 4 + column % 2;
}

struct QuantTask {
    const uint4* weight;
    const std::byte* x;  // rows of I8G32
    size_t x_stride;     // bytes
    std::byte* packed;   // the same as pack_columns_kernel makes it, for more than one tile
    int tokens, groups;
};

// Of the word of BlockI8G32 that holds the sums of both halves.
__device__ inline float sum_of_halves(unsigned sums) {
    return exact(__dp2a_lo(int(sums), 0x0101, kZeroBits<>));
}

// What a lane needs of 8 tokens: its part of their steps, and the scales of its two columns; with
// least values also the sums of their steps.
struct Columns {
    uint2 steps;
    float2 scales, sums;
};

// Tokens that follow each other, packed.
template <int tiles>
struct TokensInOrder {
    const QuantTask& task;

    template <bool with_sums>
    __device__ Columns columns(int n, int group) const {
        const int lane = int(threadIdx.x) % 32;
        const std::byte* from = packed_group(task.packed, n, group, task.groups);
        const uint2 steps = __ldg(reinterpret_cast<const uint2*>(from) + lane);
        const float4* two = reinterpret_cast<const float4*>(from + kTokenTile * kGroup) + lane % 4;
        if constexpr (with_sums) {
            const float4 all = __ldg(two);
            return {steps, make_float2(all.x, all.y), make_float2(all.z, all.w)};
        } else {
            return {steps, __ldg(reinterpret_cast<const float2*>(two)), {}};
        }
    }
};

// At most 8 tokens as they come: packing them would take a launch of its own. Beyond the last one
// it is read again, and nobody takes the sums.
template <>
struct TokensInOrder<1> {
    const std::byte *steps, *first, *second;  // of a lane in group 0

    __device__ explicit TokensInOrder(const QuantTask& task) {
        const int lane = int(threadIdx.x) % 32;
        const auto row = [&](int token) {
            return task.x + size_t(min(token, task.tokens - 1)) * task.x_stride;
        };
        steps = row(lane / 4) + offsetof(BlockI8G32, q) + lane % 4 * 4;
        first = row(lane % 4 * 2);
        second = row(lane % 4 * 2 + 1);
    }
    template <bool with_sums>
    __device__ Columns columns(int n, int group) const {
        const size_t at = size_t(group) * sizeof(BlockI8G32);
        const auto word = [&](const std::byte* from) {
            return __ldg(reinterpret_cast<const unsigned*>(from + at));
        };
        const uint2 both = make_uint2(word(steps), word(steps + kScaled));
        if constexpr (with_sums) {
            const auto head = [&](const std::byte* from) {
                return __ldg(reinterpret_cast<const uint2*>(from + at));
            };
            const uint2 a = head(first), b = head(second);
            return {both, make_float2(__uint_as_float(a.x), __uint_as_float(b.x)),
                    make_float2(sum_of_halves(a.y), sum_of_halves(b.y))};
        } else {
            return {
                both, make_float2(__uint_as_float(word(first)), __uint_as_float(word(second))), {}};
        }
    }
};

// Dot products of the four sums that a lane holds, times the whole scales.
template <class Format>
__device__ inline void multiply_group(float (&dots)[4], const uint4& steps, const uint2& columns,
                                      const GroupScales& scales) {
    constexpr Scales kScales = Format::kLayout.scales;
    if constexpr (kScales == Scales::six_bits) {
        int dot[4] = {kZeroBits<>, kZeroBits<>, kZeroBits<>, kZeroBits<>};
        mma_s8(dot, steps, columns);
        for (int i = 0; i < 4; ++i)
            dots[i] = exact(dot[i]) * (i < 2 ? scales.whole[0].x : scales.whole[0].y);
    } else if constexpr (kScales == Scales::of_halves) {
        int first[4] = {kZeroBits<>, kZeroBits<>, kZeroBits<>, kZeroBits<>};
        int second[4] = {kZeroBits<>, kZeroBits<>, kZeroBits<>, kZeroBits<>};
        mma_s8_half(first, steps.x, steps.y, columns.x);
        mma_s8_half(second, steps.z, steps.w, columns.y);
        for (int i = 0; i < 4; ++i)
            dots[i] = exact(first[i]) * (i < 2 ? scales.whole[0].x : scales.whole[0].y) +
                      exact(second[i]) * (i < 2 ? scales.whole[1].x : scales.whole[1].y);
    } else {
        constexpr int kZero = kZeroBits<Format::kShift>;
        int dot[4] = {kZero, kZero, kZero, kZero};
        mma_s8(dot, steps, columns);
        for (int i = 0; i < 4; ++i) dots[i] = exact<Format::kShift>(dot[i]);
    }
}

// Adds the products of one group and 8 tokens.
template <class Format>
__device__ inline void add_group(float (&total)[4], const uint4& steps, const GroupScales& scales,
                                 const Columns& columns) {
    constexpr QuantLayout kLayout = Format::kLayout;
    float dots[4];
    multiply_group<Format>(dots, steps, columns.steps, scales);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float x = i % 2 ? columns.scales.y : columns.scales.x;
        float term = dots[i] * ((i < 2 ? scales.scale.x : scales.scale.y) * x);
        if constexpr (kLayout.has_least()) {
            float sum = i % 2 ? columns.sums.y : columns.sums.x;
            if constexpr (kLayout.scales == Scales::six_bits)
                sum = sum * (i < 2 ? scales.whole_least.x : scales.whole_least.y);
            term = term - sum * ((i < 2 ? scales.least.x : scales.least.y) * x);
        }
        total[i] = total[i] + term;
    }
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
template <class Format, int tiles, class LaneRing, class Tokens>
__device__ void multiply_rows(float (&total)[tiles][4], LaneRing& ring, const QuantTask& task,
                              int row_tile, const Tokens& tokens) {
    constexpr QuantLayout kLayout = Format::kLayout;
    constexpr int kGroups = kLayout.groups, kBlockWords = kLayout.bytes() / int(sizeof(uint4));
    constexpr int kPartSteps = kSumPart / (kGroup * kGroups);
    constexpr bool kIsWhole = unit_elements(Format::kType) == kGroup * kGroups;
    const int lane = int(threadIdx.x) % 32;
    const int steps = tiles_of(task.groups, kGroups);
    const uint4* weight = task.weight + size_t(row_tile) * size_t(steps) * kBlockWords;
    const auto start = [&](int place, int step) {
        const uint4* block = weight + size_t(step) * kBlockWords;
#pragma unroll
        for (int i = 0; i < kLayout.words(); ++i)
            stream_async(ring.space, place + i * 32, block + kLayout.word_at(i, lane));
    };
    float part[tiles][4] = {};
    ring.run(steps, start, [&](int place, int step) {
        if (step % kPartSteps == 0) end_part(total, part);
        uint4 words[kLayout.words()];
#pragma unroll
        for (int i = 0; i < kLayout.words(); ++i) words[i] = ring.space[place + i * 32];
#pragma unroll
        for (int i = 0; i < kGroups; ++i) {
            // Beyond the last group the weights are 0: they add nothing, whatever they meet.
            const int here = step * kGroups + i;
            const int group = kIsWhole ? here : min(here, task.groups - 1);
            const uint4 group_steps = Format::steps(words, i);
            const GroupScales scales = Format::scales(words, i);
#pragma unroll
            for (int n = 0; n < tiles; ++n)
                add_group<Format>(part[n], group_steps, scales,
                                  tokens.template columns<kLayout.has_least()>(n, group));
        }
    });
    end_part(total, part);
}

}  // namespace aerie::cuda
