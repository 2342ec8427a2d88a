// Packs activations for matmuls of float weights: each value becomes a sum of parts of the weight's
// own type. For f16 each row is scaled to the middle of the type's range before.
#pragma once

#include "cuda/device/arithmetic.cuh"
#include "cuda/device/norm.cuh"
#include "cuda/device/packed.cuh"
#include "cuda/device/partial_sums.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/device/view.cuh"

namespace aerie::cuda {

constexpr int kPackThreads = kRowThreads;

struct F16 {
    static constexpr Packing kPacking = Packing::f16;
    static constexpr const char* kName = "matmul_f16";
    static constexpr int kParts = 2;

    // Takes a part off `value`. The row's amax is 2^13 or more: what remains after the second part
    // is at most 2^-38 of it.
    __device__ static uint16_t part(float& value) {
        const uint16_t bits = to_f16(value);
        value = value - from_f16(bits);
        return bits;
    }
    __device__ static void multiply(float (&c)[4], uint4 a, uint2 b) { mma_f16(c, a, b); }
};
struct BF16 {
    static constexpr Packing kPacking = Packing::bf16;
    static constexpr const char* kName = "matmul_bf16";
    static constexpr int kParts = 3;

    __device__ static uint16_t part(float& value) {
        const uint32_t bits = __float_as_uint(value) & 0xffff0000u;
        value = value - __uint_as_float(bits);
        return uint16_t(bits >> 16);
    }
    __device__ static void multiply(float (&c)[4], uint4 a, uint2 b) { mma_bf16(c, a, b); }
};

// The index of a tile of 8 tokens and 16 elements in scratch, in words of 8 bytes: a lane has one
// for each part.
template <class Format>
__device__ size_t column_place(int token_tile, int k_tile, int k_tiles, int part) {
    return ((size_t(token_tile) * size_t(k_tiles) + size_t(k_tile)) * Format::kParts +
            size_t(part)) *
           32;
}

// The power of two that scales a number of this magnitude to 2^13 .. 2^14; 1 for infinity and NaN.
__device__ inline float scale_of(unsigned largest) {
    const int exponent = int(largest >> 23);
    return exponent == 255 ? 1.0f : __uint_as_float(uint32_t(min(267 - exponent, 253)) << 23);
}
// The same for the amax of a row, by a block; `largest` is the amax of the thread's elements.
template <int threads>
__device__ float scale_of(unsigned largest, SharedArray<unsigned, threads / 32>& space) {
    const int thread = int(threadIdx.x);
    largest = largest_of_warp(largest);
    if (thread % 32 == 0) space[thread / 32] = largest;
    __syncthreads();
    for (int i = 0; i < threads / 32; ++i) largest = max(largest, unsigned(space[i]));
    return scale_of(largest);
}
__device__ inline float inverse_of_power(float scale) {
    return __uint_as_float((254u << 23) - __float_as_uint(scale));
}

// Packed activations, and the factor of each token by which its sums have to be multiplied.
struct PackedColumns {
    uint2* columns;
    float* inverse_scales;
};

// Packs the row of a token (see KeptRow), by a block of `threads`. Other tokens of its tile are
// kept as it is: the columns of a matrix instruction do not depend on each other.
template <class Format, int threads, class Row>
__device__ void pack_row(const PackedColumns& to, int token, int cols, const Row& row,
                         SharedArray<unsigned, threads / 32>& space) {
    const int k_tiles = float_tiles(cols), count = k_tiles * kFloatTileCols;
    float scale = 1;
    if (Format::kParts == 2) {
        unsigned most = 0;
        for_each(row, cols, [&](int, float value) { most = max(most, magnitude_of(value)); });
        scale = scale_of<threads>(most, space);
    }
    if (threadIdx.x == 0) to.inverse_scales[token] = inverse_of_power(scale);
    // A thread's elements have the same place in their tiles. From one to the next it is kApart
    // 16-bit elements; a tile has 32 words of 8 bytes for each part.
    static_assert(threads % kFloatTileCols == 0);
    constexpr int kApart = threads / kFloatTileCols * Format::kParts * 32 * 4;
    row.for_some(count, [&](int first, const float(&some)[kTogether]) {
        const int lane = token % kTokenTile * 4 + first % 8 / 2, word = first % 16 / 8;
        const size_t tile =
            column_place<Format>(token / kTokenTile, first / kFloatTileCols, k_tiles, 0);
        uint16_t* const at =
            reinterpret_cast<uint16_t*>(to.columns + tile) + (lane * 2 + word) * 2 + first % 2;
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            if (first + i * threads >= count) return;
            float value = some[i] * scale;
#pragma unroll
            for (int part = 0; part < Format::kParts; ++part)
                at[i * kApart + part * 32 * 4] = Format::part(value);
        }
    });
}

// One block per row.
template <class Format>
__global__ void pack_columns_kernel(PackedColumns to, View<const float> x) {
    __shared__ SharedArray<unsigned, kPackThreads / 32> space;
    const int token = int(blockIdx.x);
    begin_beside();
    pack_row<Format, kPackThreads>(
        to, token, x.cols, made_row<kPackThreads>(x.cols, [&](int k) { return x[token][k]; }),
        space);
}

// The same for rows that are normalised first; before that, `sums` completes them.
template <class Format, int each, class Sums>
__global__ void __launch_bounds__(kPackThreads, 1)
    norm_columns_kernel(PackedColumns to, NormedRows rows, Sums sums) {
    __shared__ SharedArray<unsigned, kPackThreads / 32> largest;
    __shared__ NormedRows::Space space;
    const int token = int(blockIdx.x);
    rows.with_row<each>(
        token, space,
        [&](const auto& row) {
            pack_row<Format, kPackThreads>(to, token, rows.x.cols, row, largest);
        },
        [&](auto& values) { sums.complete(values, token); });
}

// Stores the amax of what the lanes of a warp have of the only row that a kernel makes, for the
// matmul that reads it (see RowTask). A NaN is larger than any number.
__device__ inline void store_amax(float* to, unsigned magnitude) {
    magnitude = largest_of_warp(magnitude);
    if (threadIdx.x % 32 == 0) *to = __uint_as_float(magnitude);
}

}  // namespace aerie::cuda
