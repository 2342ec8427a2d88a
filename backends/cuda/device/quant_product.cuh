// The products of quantised weights, for matmul_quant.cu and expert_matmul.cu: dot products of 32
// elements on the tensor cores, added in the order of core/quant.h.
#pragma once

#include "core/quant.h"
#include "cuda/device/quant_format.cuh"
#include "cuda/device/stream.cuh"

namespace aerie::cuda {

struct QuantTask {
    const uint4* weight;
    const std::byte* x;  // rows of I8G32
    size_t x_stride;     // bytes
    int groups, row_tiles;
    QuantSplitK split;
};

// Blocks that a multiprocessor must have registers for. 64 tokens need more registers than two
// blocks leave, unless the type has neither high bits nor mins.
template <class Format, int tiles>
constexpr int kBlocks = tiles == 8 && (Format::kLayout.high_bits > 0 || Format::kLayout.has_least())
                            ? 1
                            : 2;

// The weights in a stage of a block.
template <class Format>
struct WeightWords {
    static constexpr int kWeightWords = kBlockTiles * Format::kWords;
    static constexpr size_t kBytes = kWeightWords * sizeof(uint4);
    SharedArray<uint4, kWeightWords> weight;
};
// A stage of a block. In the activations the quantised values come first, then scales and sums.
template <class Format, int tiles>
struct QuantStep : WeightWords<Format> {
    static constexpr int kTokens = tiles * kTokenTile;
    static constexpr int kHeads = kStepGroups * kTokens * kGroup / 4;  // index where scales begin
    static constexpr int kColumnWords = kHeads + kStepGroups * kTokens * 2;
    static constexpr size_t kBytes = WeightWords<Format>::kBytes + kColumnWords * sizeof(unsigned);
    SharedArray<unsigned, kColumnWords> columns;
};

// The sum of a group's quantised values, from the word of BlockI8G32 with the sums of both halves.
__device__ inline float sum_of_halves(unsigned sums) {
    return exact(__dp2a_lo(int(sums), 0x0101, kZeroBits<>));
}

// A group of activations as a lane needs it, for 8 tokens: its part of their quantised values, and
// the scales of its two columns; for types with mins also the sums of the quantised values.
struct GroupColumns {
    uint2 steps;
    float2 scales, sums;
};

// Reads a group of 8 tokens, which begin at index `first` of a stage.
template <class Format, int tiles>
__device__ inline GroupColumns read_columns(QuantStep<Format, tiles>& from, int first) {
    const int lane = int(threadIdx.x) % 32, steps = (first + lane / 4) * (kGroup / 4);
    const uint4 heads =
        from.columns.template joined<uint4>(from.kHeads + (first + lane % 4 * 2) * 2);
    GroupColumns columns = {
        {}, make_float2(__uint_as_float(heads.x), __uint_as_float(heads.z)), {}};
    if constexpr (Format::kLayout.scales == Scales::of_halves)
        columns.steps =
            make_uint2(from.columns[steps + lane % 4], from.columns[steps + 4 + lane % 4]);
    else
        columns.steps = from.columns.template joined<uint2>(steps + lane % 4 * 2);
    if constexpr (Format::kLayout.has_least())
        columns.sums = make_float2(sum_of_halves(heads.y), sum_of_halves(heads.w));
    return columns;
}

// Copies the activations of each step: a thread has kEach pieces of 8 bytes. Beyond the last group
// that one is copied again: the weights there are 0, and add nothing whatever they meet.
template <class Format, int tiles>
struct QuantColumns {
    static constexpr int kTiles = tiles;
    static constexpr bool kMakesParts = false;
    using Step = QuantStep<Format, tiles>;
    static constexpr int kOfGroup = int(sizeof(BlockI8G32) / sizeof(uint2));
    static constexpr int kOfToken = kStepGroups * kOfGroup;
    static constexpr int kPieces = Step::kTokens * kOfToken;
    static constexpr int kEach = tiles_of(kPieces, kBlockThreads);
    static constexpr bool kIsWhole = unit_elements(Format::kType) % (kStepGroups * kGroup) == 0;
    const std::byte* x;
    unsigned from[kEach];  // byte offsets in x
    int groups;

    // row_of(token) is the row of x of a token.
    template <class RowOf>
    __device__ QuantColumns(const QuantTask& task, const RowOf& row_of)
        : x(task.x), groups(task.groups) {
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const int piece = min(i * kBlockThreads + int(threadIdx.x), kPieces - 1);
            from[i] = unsigned(row_of(piece / kOfToken)) * unsigned(task.x_stride) +
                      unsigned(piece % kOfGroup) * unsigned(sizeof(uint2));
        }
    }
    __device__ void begin() const {}
    __device__ void copy(Step& to, int step) const {
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const int piece = i * kBlockThreads + int(threadIdx.x);
            if (piece >= kPieces) break;
            const int of_step = piece % kOfToken / kOfGroup;
            const int place = of_step * Step::kTokens + piece / kOfToken;
            int group = step * kStepGroups + of_step;
            if (!kIsWhole) group = min(group, groups - 1);
            const std::byte* block = x + from[i] + size_t(group) * sizeof(BlockI8G32);
            const int of_group = piece % kOfGroup;
            const int at = of_group == 0 ? Step::kHeads + place * 2
                                         : place * (kGroup / 4) + (of_group - 1) * 2;
            copy_async(to.columns, at, reinterpret_cast<const uint2*>(block));
        }
    }
    // The activations of a group of the step, for 8 tokens.
    __device__ GroupColumns get(Step& from, int, int group, int token_tile) const {
        return read_columns<Format, tiles>(from, group * Step::kTokens + token_tile * kTokenTile);
    }
};

// The dot products of a group for a lane's four accumulators, times the integer scales.
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

// Adds the products of one group and 8 tokens to a lane's accumulators.
template <class Format>
__device__ inline void add_group(float (&total)[4], const uint4& steps, const GroupScales& scales,
                                 const GroupColumns& columns) {
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

// Starts the copy of one step of a tile: its quantised values, and all scales of their block.
template <class Format>
__device__ inline void copy_weight(WeightWords<Format>& to, const uint4* weight, int step) {
    constexpr QuantLayout kLayout = Format::kLayout;
    constexpr int kSteps = kLayout.groups / kStepGroups, kScalesAt = kLayout.scales_at() / 16;
    const int warp = int(threadIdx.x) / 32, second = step % kSteps;
    const uint4* block = weight + size_t(step / kSteps) * (kLayout.bytes() / 16);
#pragma unroll
    for (int i = 0; i < tiles_of(Format::kWords, 32); ++i) {
        const int word = i * 32 + int(threadIdx.x) % 32;
        const int at = word < Format::kStepWords ? second * Format::kStepWords + word
                                                 : kScalesAt + word - Format::kStepWords;
        if (word < Format::kWords)
            stream_async(to.weight, warp * Format::kWords + word, block + at);
    }
}

// The product of a block: 128 rows, 16 per warp, and `tiles` times 8 tokens. Returns whether this
// block has the final sums in `total`, and so has to run the epilogue (see QuantSplitK).
template <class Format, int tiles, class Columns>
__device__ inline bool multiply_groups(float (&total)[tiles][4], const QuantTask& task,
                                       Columns& columns) {
    using Step = typename Columns::Step;
    constexpr QuantLayout kLayout = Format::kLayout;
    constexpr int kPartSteps = kSumPart / (kGroup * kStepGroups);
    const int row_tile = int(blockIdx.x) * kBlockTiles + int(threadIdx.x) / 32;
    const int blocks = tiles_of(task.groups, kLayout.groups);
    const uint4* weight = task.weight + size_t(min(row_tile, task.row_tiles - 1)) * size_t(blocks) *
                                            (kLayout.bytes() / 16);
    const StepRange range =
        range_of(task.split, blocks * (kLayout.groups / kStepGroups), kPartSteps);
    float part[tiles][4] = {};
    const auto copy_weights = [&](Step& to, int step) { copy_weight<Format>(to, weight, step); };
    const auto take = [&](Step& from, int step) {
        // With many tokens, a loop over parts around the loop over steps would need more registers.
        if (!Columns::kMakesParts && step % kPartSteps == 0) add_part(total, part);
        if (row_tile >= task.row_tiles) return;
        const bool second = step % (kLayout.groups / kStepGroups) > 0;
        const auto word = [&](int i) -> uint4 {
            return from.weight[int(threadIdx.x) / 32 * Format::kWords + i];
        };
#pragma unroll
        for (int i = 0; i < kStepGroups; ++i) {
            const uint4 steps = Format::steps(word, i);
            const GroupScales scales = Format::scales(word, i, second);
#pragma unroll
            for (int n = 0; n < tiles; ++n)
                add_group<Format>(part[n], steps, scales, columns.get(from, step, i, n));
        }
    };
    Stream stream(launch_shared<Ring<Step>>(), range, copy_weights, columns, take);
    if constexpr (Columns::kMakesParts)
        while (stream.has_more()) {
            columns.make_part(stream.step() / kPartSteps);
            stream.take_until(min(stream.step() + kPartSteps, range.after));
            add_part(total, part);
        }
    else {
        stream.take_until(range.after);
        add_part(total, part);
    }
    return add_up(total, task.split);
}
// The same for activations in the rows row_of(token) of x.
template <class Format, int tiles, class RowOf>
__device__ inline bool multiply_rows(float (&total)[tiles][4], const QuantTask& task,
                                     const RowOf& row_of) {
    QuantColumns<Format, tiles> columns(task, row_of);
    return multiply_groups<Format>(total, task, columns);
}

}  // namespace aerie::cuda
