// What matmuls of float weights have in common, whether their rows follow each other or go to
// experts: how activations are packed, and the products of one warp.
#pragma once

#include "cuda/device/arithmetic.cuh"
#include "cuda/device/norm.cuh"
#include "cuda/device/stream.cuh"

namespace aerie::cuda {

constexpr int kFloatStepsAhead = 8;
constexpr int kPackThreads = kNormThreads;
constexpr int kF32Tokens = 8;

struct F16 {
    static constexpr const char* kName = "matmul_f16";
    static constexpr int kParts = 2;

    // The row's largest element is 2^13 or more: what the second part drops is 2^-38 of it.
    __device__ static uint16_t part(float& value) {
        const uint16_t bits = to_f16(value);
        value = value - from_f16(bits);
        return bits;
    }
    __device__ static void multiply(float (&c)[4], uint4 a, uint2 b) { mma_f16(c, a, b); }
};
struct BF16 {
    static constexpr const char* kName = "matmul_bf16";
    static constexpr int kParts = 3;

    __device__ static uint16_t part(float& value) {
        const uint32_t bits = __float_as_uint(value) & 0xffff0000u;
        value = value - __uint_as_float(bits);
        return uint16_t(bits >> 16);
    }
    __device__ static void multiply(float (&c)[4], uint4 a, uint2 b) { mma_bf16(c, a, b); }
};

// The columns of a tile's 16 elements in scratch: for each part 8 bytes a lane.
template <class Format>
__device__ size_t column_place(int token_tile, int k_tile, int k_tiles, int part) {
    return ((size_t(token_tile) * size_t(k_tiles) + size_t(k_tile)) * Format::kParts +
            size_t(part)) *
           32;
}

// The power of two that brings the row's largest element to 2^13 .. 2^14; 1 where that is no
// number.
template <class Value>
__device__ float row_scale(const Value& value, int cols,
                           SharedArray<float, kPackThreads / 32>& space) {
    const int thread = int(threadIdx.x);
    uint32_t largest = 0;
    for_elements(cols, value, [&](int, float element) {
        largest = max(largest, __float_as_uint(element) & 0x7fffffffu);
    });
    for (int distance = 16; distance > 0; distance /= 2)
        largest = max(largest, __shfl_xor_sync(kAllLanes, largest, distance));
    if (thread % 32 == 0) space[thread / 32] = __uint_as_float(largest);
    __syncthreads();
    for (int i = 0; i < kPackThreads / 32; ++i) largest = max(largest, __float_as_uint(space[i]));
    const int exponent = int(largest >> 23);
    return exponent == 255 ? 1.0f : __uint_as_float(uint32_t(min(267 - exponent, 253)) << 23);
}

// Rows as they are; NormedRows are the other kind.
struct PlainRows {
    static constexpr const char* kName = "pack_columns";
    View<const float> x;

    struct Space {};
    __device__ float factor(int, Space&) const { return 1; }
    __device__ float value(int r, int i, float) const { return x[r][i]; }
};

// A block a token; those beyond the last one become 0.
template <class Format, class Rows>
__global__ void pack_columns_kernel(uint2* packed, float* inverse_scales, Rows rows) {
    __shared__ SharedArray<float, kPackThreads / 32> largest;
    __shared__ typename Rows::Space space;
    const int token = int(blockIdx.x), cols = rows.x.cols, k_tiles = float_tiles(cols);
    const bool here = token < rows.x.rows;
    const float factor = here ? rows.factor(token, space) : 0.0f;
    const auto value_of = [&](int k) {
        return rows.value(min(token, rows.x.rows - 1), min(k, cols - 1), factor);
    };
    float scale = 1;
    if (Format::kParts == 2 && here) scale = row_scale(value_of, cols, largest);
    if (threadIdx.x == 0)
        inverse_scales[token] = __uint_as_float((254u << 23) - __float_as_uint(scale));
    const auto load = [&](int k) {
        const float value = value_of(k) * scale;
        return here && k < cols ? value : 0.0f;
    };
    for_elements(k_tiles * kFloatTileCols, load, [&](int k, float value) {
        const int lane = token % kTokenTile * 4 + k % 8 / 2, word = k % 16 / 8;
        for (int part = 0; part < Format::kParts; ++part) {
            const size_t place =
                column_place<Format>(token / kTokenTile, k / kFloatTileCols, k_tiles, part);
            reinterpret_cast<uint16_t*>(packed + place)[(lane * 2 + word) * 2 + k % 2] =
                Format::part(value);
        }
    });
}

struct FloatTask {
    const uint4* weight;
    const uint2* packed;
    const float* inverse_scales;
    int k_tiles;
    MatmulOutput output;
};

// Tokens that lie as they were packed. Where a lane's columns of token tile n begin, and the
// inverse scale of one of the two tokens whose sums it has.
struct PackedInOrder {
    template <class Format>
    __device__ const uint2* columns(const FloatTask& task, int n) const {
        return task.packed + column_place<Format>(n, 0, task.k_tiles, 0) + int(threadIdx.x);
    }
    __device__ float inverse_scale(const FloatTask& task, int n, int i) const {
        return task.inverse_scales[n * kTokenTile + int(threadIdx.x) % 4 * 2 + i];
    }
};

// One warp: 16 rows, `tiles` times 8 tokens.
template <class Format, int tiles, class Tokens>
__device__ inline void multiply_floats(const FloatTask& task, const Tokens& tokens) {
    __shared__ Ring<kFloatStepsAhead, kStepTiles> ring;
    const int lane = int(threadIdx.x), row_tile = int(blockIdx.x), k_tiles = task.k_tiles;
    const uint4* weight = task.weight + size_t(row_tile) * size_t(k_tiles) * 32 + lane;
    const uint2* columns[tiles];
#pragma unroll
    for (int n = 0; n < tiles; ++n) columns[n] = tokens.template columns<Format>(task, n);
    float total[tiles][4] = {};
    const auto start = [&](int place, int step) {
#pragma unroll
        for (int i = 0; i < kStepTiles; ++i)
            stream_async(ring.space, place + i * 32, weight + (step * kStepTiles + i) * 32);
    };
    ring.run(k_tiles / kStepTiles, start, [&](int place, int step) {
#pragma unroll
        for (int i = 0; i < kStepTiles; ++i) {
            const int k_tile = step * kStepTiles + i;
            const uint4 a = ring.space[place + i * 32];
#pragma unroll
            for (int n = 0; n < tiles; ++n) {
                const uint2* from = columns[n] + k_tile * Format::kParts * 32;
#pragma unroll
                for (int part = 0; part < Format::kParts; ++part)
                    Format::multiply(total[n], a, __ldg(from + part * 32));
            }
        }
    });
#pragma unroll
    for (int n = 0; n < tiles; ++n) {
        float sums[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[i] = total[n][i] * tokens.inverse_scale(task, n, i % 2);
        task.output.put_tile(n, row_tile, sums);
    }
}

// One warp: a lane is an output row and takes the inner elements in ascending order. Of kF32Tokens
// tokens from `first` on, whose rows of x row_of tells, also beyond the last one.
template <class Row>
__device__ inline void multiply_f32(const MatmulOutput& output, const View<const float>& x,
                                    const float* weight, int first, const Row& row_of) {
    const int lane = int(threadIdx.x);
    const float* strip = weight + size_t(blockIdx.x) * size_t(x.cols) * kF32Rows + lane;
    const float* token[kF32Tokens];
    float sums[kF32Tokens] = {};
#pragma unroll
    for (int c = 0; c < kF32Tokens; ++c) token[c] = x[row_of(first + c)];
#pragma unroll 4
    for (int k = 0; k < x.cols; ++k) {
        const float w = __ldg(strip + size_t(k) * kF32Rows);
#pragma unroll
        for (int c = 0; c < kF32Tokens; ++c) sums[c] = __fmaf_rn(w, token[c][k], sums[c]);
    }
    const int place = int(blockIdx.x) * kF32Rows + lane, row = output.order.row(place);
#pragma unroll
    for (int c = 0; c < kF32Tokens; ++c) {
        float value = sums[c];
        if (output.gated) {  // the other half's row is 8 lanes away
            value = silu(sums[c]) * __shfl_xor_sync(kAllLanes, sums[c], kTileRows / 2);
            if (place % kTileRows >= kTileRows / 2) continue;
        }
        if (row >= 0) output.put(first + c, row, value);
    }
}

}  // namespace aerie::cuda
