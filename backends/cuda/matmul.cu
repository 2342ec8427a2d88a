// Float weights times f32 activations. F16 and BF16 go to the tensor cores, their activations cut
// into parts of that type which keep all their bits (BF16: three) or 22 of them (F16: two, each row
// brought to the middle of its range by a power of two). F32 goes by fused multiply-adds.
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/device/arithmetic.cuh"
#include "cuda/device/norm.cuh"
#include "cuda/device/stream.cuh"
#include "cuda/launch.h"
#include "cuda/scratch.h"
#include "cuda/weight.h"

namespace aerie::cuda {

namespace {

constexpr int kStepsAhead = 8;
constexpr int kStepTiles = 4;  // of 16 inner elements
constexpr int kPackThreads = kNormThreads;
constexpr int kF32Tokens = 8;

struct F16 {
    static constexpr const char* kName = "matmul_f16";
    static constexpr int kParts = 2;
    static constexpr float kRest = 0x1p-11f;  // what the parts after the first are multiples of

    __device__ static uint16_t part(int index, float& value) {
        const uint16_t bits = to_f16(value);
        value = (value - from_f16(bits)) * 2048.0f;
        return bits;
    }
    __device__ static void multiply(float (&c)[4], uint4 a, uint2 b) { mma_f16(c, a, b); }
};
struct BF16 {
    static constexpr const char* kName = "matmul_bf16";
    static constexpr int kParts = 3;
    static constexpr float kRest = 1;

    __device__ static uint16_t part(int index, float& value) {
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
    for (int i = thread; i < cols; i += kPackThreads)
        largest = max(largest, __float_as_uint(value(i)) & 0x7fffffffu);
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
    const int token = int(blockIdx.x), cols = rows.x.cols, k_tiles = tiles_of(cols, kFloatTileCols);
    const bool here = token < rows.x.rows;
    const float factor = here ? rows.factor(token, space) : 0.0f;
    const auto value_of = [&](int k) { return rows.value(token, k, factor); };
    float scale = 1;
    if (Format::kParts == 2 && here) scale = row_scale(value_of, cols, largest);
    if (threadIdx.x == 0)
        inverse_scales[token] = __uint_as_float((254u << 23) - __float_as_uint(scale));
    for (int k = int(threadIdx.x); k < k_tiles * kFloatTileCols; k += kPackThreads) {
        float value = here && k < cols ? value_of(k) * scale : 0.0f;
        const int lane = token % kTokenTile * 4 + k % 8 / 2, word = k % 16 / 8;
        for (int part = 0; part < Format::kParts; ++part) {
            const size_t place =
                column_place<Format>(token / kTokenTile, k / kFloatTileCols, k_tiles, part);
            reinterpret_cast<uint16_t*>(packed + place)[(lane * 2 + word) * 2 + k % 2] =
                Format::part(part, value);
        }
    }
}

struct FloatTask {
    const uint4* weight;
    const uint2* packed;
    const float* inverse_scales;
    int k_tiles;
    MatmulOutput output;
};

// One warp: 16 rows, `tiles` times 8 tokens.
template <class Format, int tiles>
__global__ void __launch_bounds__(32) multiply_kernel(FloatTask task) {
    __shared__ Ring<kStepsAhead, kStepTiles> ring;
    const int lane = int(threadIdx.x), row_tile = int(blockIdx.x), k_tiles = task.k_tiles;
    const uint4* weight = task.weight + size_t(row_tile) * size_t(k_tiles) * 32 + lane;
    float first[tiles][4] = {}, rest[tiles][4] = {};
    const auto start = [&](int place, int step) {
#pragma unroll
        for (int i = 0; i < kStepTiles; ++i)
            if (step * kStepTiles + i < k_tiles)
                copy_async(ring.space, place + i * 32, weight + (step * kStepTiles + i) * 32);
    };
    ring.run(tiles_of(k_tiles, kStepTiles), start, [&](int place, int step) {
#pragma unroll
        for (int i = 0; i < kStepTiles; ++i) {
            const int k_tile = step * kStepTiles + i;
            if (k_tile >= k_tiles) break;
            const uint4 a = ring.space[place + i * 32];
#pragma unroll
            for (int n = 0; n < tiles; ++n) {
                const uint2* columns =
                    task.packed + column_place<Format>(n, k_tile, k_tiles, 0) + lane;
                Format::multiply(first[n], a, __ldg(columns));
#pragma unroll
                for (int part = 1; part < Format::kParts; ++part)
                    Format::multiply(rest[n], a, __ldg(columns + part * 32));
            }
        }
    });
#pragma unroll
    for (int n = 0; n < tiles; ++n) {
        const float* scales = task.inverse_scales + n * kTokenTile + lane % 4 * 2;
        float sums[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            sums[i] = (first[n][i] + rest[n][i] * Format::kRest) * scales[i % 2];
        task.output.put_tile(n, row_tile, sums);
    }
}

template <class Format>
auto kernel_of(int tiles) {
    return with_token_tiles(tiles, [](auto count) { return multiply_kernel<Format, count.value>; });
}

// One warp: a lane is an output row and takes the inner elements in ascending order.
__global__ void __launch_bounds__(32)
    multiply_f32_kernel(MatmulOutput output, View<const float> x, const float* weight) {
    const int lane = int(threadIdx.x), first = int(blockIdx.y) * kF32Tokens;
    const float* strip = weight + size_t(blockIdx.x) * size_t(x.cols) * kF32Rows + lane;
    const float* token[kF32Tokens];
    float sums[kF32Tokens] = {};
#pragma unroll
    for (int c = 0; c < kF32Tokens; ++c) token[c] = x[min(first + c, x.rows - 1)];
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

// The columns in scratch: their rows' scales, then the parts.
float* scales_in(std::byte* scratch) {
    return reinterpret_cast<float*>(scratch);
}
uint2* columns_in(std::byte* scratch) {
    return reinterpret_cast<uint2*>(scratch + kRowScaleBytes);
}

template <class Format, class Rows>
void pack_columns(std::byte* scratch, const Rows& rows, Queue& queue) {
    const unsigned tokens = unsigned(token_tiles(rows.x.rows) * kTokenTile);
    launch(pack_columns_kernel<Format, Rows>,
           {dim3(tokens), dim3(kPackThreads), queue, Rows::kName}, columns_in(scratch),
           scales_in(scratch), rows);
}

template <class Format>
void multiply_columns(const MatmulOutput& output, std::byte* scratch, const CudaSegment& w,
                      Queue& queue) {
    launch(kernel_of<Format>(token_tiles(output.out.rows)),
           {dim3(unsigned(tiles_of(w.place.rows, kTileRows))), dim3(32), queue, Format::kName},
           FloatTask{reinterpret_cast<const uint4*>(w.data), columns_in(scratch),
                     scales_in(scratch), tiles_of(w.cols, kFloatTileCols), output});
}

}  // namespace

void CudaBackend::multiply(const MatmulOutput& output, MatmulColumns& columns,
                           const CudaSegment& w) {
    if (w.cols > limits_.widest)
        return queue_->refuse("matmul", "wider activations than were reserved");
    if (is_quantised(w.place.dtype)) return multiply_quantised(output, columns, w);
    const Tensor& x = columns.x;
    const Packing wanted = packing_of(w.place.dtype, x.rows);
    if (wanted != Packing::none) {
        const bool f16 = wanted == Packing::f16;
        if (columns.packed != wanted)
            f16 ? pack_columns<F16>(packed_, PlainRows{x}, *queue_)
                : pack_columns<BF16>(packed_, PlainRows{x}, *queue_);
        columns.packed = wanted;
        return f16 ? multiply_columns<F16>(output, packed_, w, *queue_)
                   : multiply_columns<BF16>(output, packed_, w, *queue_);
    }
    const dim3 blocks(unsigned(tiles_of(w.place.rows, kF32Rows)),
                      unsigned(tiles_of(x.rows, kF32Tokens)));
    launch(multiply_f32_kernel, {blocks, dim3(32), *queue_, "matmul_f32"}, output, x,
           reinterpret_cast<const float*>(w.data));
}

// Where the matmuls would pack their columns, the norm does.
bool CudaBackend::pack_for_readers(const RmsNorm& norm) {
    packed_for_.clear();
    if (norm.readers.empty() || norm.x.rows > kPassRows) return false;
    const Packing packing = common_packing(*norm.readers.front(), norm.x.rows);
    for (const Weight* reader : norm.readers)
        if (common_packing(*reader, norm.x.rows) != packing) return false;
    const NormedRows rows(norm.x, norm.weight, norm.epsilon);
    switch (packing) {
        case Packing::none:
            return false;
        case Packing::groups:
            pack_normed(rows);
            break;
        case Packing::f16:
            pack_columns<F16>(packed_, rows, *queue_);
            break;
        case Packing::bf16:
            pack_columns<BF16>(packed_, rows, *queue_);
            break;
    }
    packed_for_ = norm.readers;
    return true;
}

}  // namespace aerie::cuda
