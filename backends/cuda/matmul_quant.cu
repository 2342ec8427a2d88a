// Quantised weights times quantised activations on the tensor cores. Dot products of 32 elements
// are exact integers, so only the sum over groups has an order, that of core/quant.h.
#include <cassert>

#include "core/quant.h"
#include "cuda/backend.h"
#include "cuda/device/norm.cuh"
#include "cuda/device/quantise.cuh"
#include "cuda/device/stream.cuh"
#include "cuda/launch.h"
#include "cuda/scratch.h"
#include "cuda/weight.h"

namespace aerie::cuda {

namespace {

constexpr int kStepsAhead = 8;
constexpr int kPartSteps = kSumPart / (kGroup * kBlockGroups);  // of a part of the sum
constexpr int kGatedWarps = 4;  // their rings are shorter: shared memory is that of a block

// A group of 8 tokens in scratch: 8 bytes a lane, then the scales of the tokens.
__device__ inline std::byte* packed_group(std::byte* packed, int token_tile, int group,
                                          int groups) {
    return packed + (size_t(token_tile) * size_t(groups) + size_t(group)) * kQuantColumnBytes;
}

// A thread takes four elements of a token; tokens beyond the last one become 0.
__global__ void pack_columns_kernel(std::byte* packed, const std::byte* x, size_t stride_bytes,
                                    int tokens, int groups) {
    const int token = int(blockIdx.y), i = int(blockIdx.x * blockDim.x + threadIdx.x);
    const int group = i / 8, word = i % 8;
    if (group >= groups) return;
    std::byte* to = packed_group(packed, token / kTokenTile, group, groups);
    const int column = token % kTokenTile;
    const bool here = token < tokens;
    const std::byte* from = x + size_t(token) * stride_bytes + size_t(group) * sizeof(BlockI8G32);
    const uint32_t* words = reinterpret_cast<const uint32_t*>(from);
    const int lane = column * 4 + word % 4;
    reinterpret_cast<uint32_t*>(to)[lane * 2 + word / 4] = here ? words[1 + word] : 0;
    if (word == 0)
        reinterpret_cast<float*>(to + kTokenTile * kGroup)[column] =
            here ? __uint_as_float(words[0]) : 0.0f;
}

// A block a token, as pack_columns_kernel packs its quantised row.
__global__ void pack_normed_kernel(std::byte* packed, NormedRows rows, int groups) {
    __shared__ NormedRows::Space space;
    const int token = int(blockIdx.x), lane = int(threadIdx.x) % kGroup;
    const int column = token % kTokenTile, word = lane / 4;
    const bool here = token < rows.x.rows;
    const float factor = here ? rows.factor(token, space) : 0.0f;
    for (int group = int(threadIdx.x) / kGroup; group < groups; group += kNormThreads / kGroup) {
        std::byte* to = packed_group(packed, token / kTokenTile, group, groups);
        const float value = here ? rows.value(token, group * kGroup + lane, factor) : 0.0f;
        quantise_group(
            reinterpret_cast<int8_t*>(to) + ((column * 4 + word % 4) * 2 + word / 4) * 4 + lane % 4,
            reinterpret_cast<float*>(to + kTokenTile * kGroup) + column, value);
    }
}

}  // namespace

struct QuantTask {
    const uint4* weight;
    const std::byte* x;  // rows of I8G32
    size_t x_stride;     // bytes
    std::byte* packed;   // the same as pack_columns_kernel makes it, for more than one tile
    int tokens, groups;
};

namespace {

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
    return {make_uint2(word(token, 1 + t), word(token, 5 + t)),
            make_float2(__uint_as_float(word(2 * t, 0)), __uint_as_float(word(2 * t + 1, 0)))};
}

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
template <class Format, int tiles, int steps_ahead>
__device__ void multiply_rows(float (&total)[tiles][4], Ring<steps_ahead, Format::kWords + 1>& ring,
                              const QuantTask& task, int row_tile) {
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
                add_group<Format>(
                    part[n], Format::steps(words, i), component(scales, i),
                    tiles == 1 ? plain_columns(task, group) : packed_columns(task, n, group));
        }
    });
    end_part(total, part);
}

template <class Format, int tiles>
__global__ void __launch_bounds__(32) multiply_kernel(QuantTask task, MatmulOutput output) {
    __shared__ Ring<kStepsAhead, Format::kWords + 1> ring;
    float total[tiles][4] = {};
    multiply_rows<Format>(total, ring, task, int(blockIdx.x));
#pragma unroll
    for (int n = 0; n < tiles; ++n) output.put_tile(n, int(blockIdx.x), total[n]);
}

// Four warps of a paired weight: each has 8 columns of silu(gate) * up, together they are a group.
template <class Format, int tiles>
__global__ void __launch_bounds__(kGatedWarps * 32, 3)
    gated_kernel(QuantTask task, ActivationView out) {
    __shared__ Ring<kStepsAhead / 2, Format::kWords + 1> rings[kGatedWarps];
    __shared__ SharedArray<float, kTokenTile * kGroup> gated;
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    float total[tiles][4] = {};
    multiply_rows<Format>(total, rings[warp], task, int(blockIdx.x) * kGatedWarps + warp);
#pragma unroll
    for (int n = 0; n < tiles; ++n) {
        for (int i = 0; i < 2; ++i)
            gated[(lane % 4 * 2 + i) * kGroup + warp * 8 + lane / 4] =
                silu(total[n][i]) * total[n][2 + i];
        __syncthreads();
        for (int token = warp; token < kTokenTile; token += kGatedWarps)
            if (n * kTokenTile + token < task.tokens)
                put_activations(out, n * kTokenTile + token, int(blockIdx.x) * kGroup,
                                gated[token * kGroup + lane]);
        __syncthreads();
    }
}

template <class Format>
auto kernel_of(int tiles) {
    return with_token_tiles(tiles, [](auto count) { return multiply_kernel<Format, count.value>; });
}
template <class Format>
auto gated_kernel_of(int tiles) {
    return with_token_tiles(tiles, [](auto count) { return gated_kernel<Format, count.value>; });
}

struct QuantKernels {
    decltype(kernel_of<Q8>(1)) matmul;
    decltype(gated_kernel_of<Q8>(1)) gated;
    const char *matmul_name, *gated_name;
};
QuantKernels kernels_of(DType type, int tiles) {
    if (type == DType::Q8_0)
        return {kernel_of<Q8>(tiles), gated_kernel_of<Q8>(tiles), "matmul_q8_0",
                "matmul_swiglu_q8_0"};
    assert(type == DType::Q4_0);
    return {kernel_of<Q4>(tiles), gated_kernel_of<Q4>(tiles), "matmul_q4_0", "matmul_swiglu_q4_0"};
}

}  // namespace

void CudaBackend::pack_normed(const NormedRows& rows) {
    const unsigned tokens = unsigned(token_tiles(rows.x.rows) * kTokenTile);
    launch(pack_normed_kernel, {dim3(tokens), dim3(kNormThreads), *queue_, NormedRows::kName},
           packed_, rows, rows.x.cols / kGroup);
}

// Quantises and packs the columns, where that was not done yet.
QuantTask CudaBackend::quant_task(MatmulColumns& columns, const CudaSegment& w) {
    if (columns.x.dtype == DType::F32 && !columns.quantised) {
        columns.quantised = dense_prefix(quantised_, columns.x.rows, columns.x.cols);
        execute(Copy{columns.quantised, columns.x});
    }
    const Tensor& x = columns.quantised ? columns.quantised : columns.x;
    const QuantTask task{reinterpret_cast<const uint4*>(w.data),
                         row<const std::byte>(x, 0),
                         size_bytes(x.dtype, size_t(x.row_stride)),
                         packed_,
                         x.rows,
                         w.cols / kGroup};
    const Packing wanted = packing_of(w.place.dtype, x.rows);
    if (wanted != Packing::none && wanted != columns.packed) {
        const dim3 blocks(unsigned(tiles_of(task.groups * 8, 128)),
                          unsigned(token_tiles(x.rows) * kTokenTile));
        launch(pack_columns_kernel, {blocks, dim3(128), *queue_, "pack_columns"}, packed_, task.x,
               task.x_stride, task.tokens, task.groups);
        columns.packed = wanted;
    }
    return task;
}

void CudaBackend::multiply_quantised(const MatmulOutput& output, MatmulColumns& columns,
                                     const CudaSegment& w) {
    const QuantKernels kernels = kernels_of(w.place.dtype, token_tiles(columns.x.rows));
    launch(
        kernels.matmul,
        {dim3(unsigned(tiles_of(w.place.rows, kTileRows))), dim3(32), *queue_, kernels.matmul_name},
        quant_task(columns, w), output);
}

void CudaBackend::multiply_gated(const Tensor& out, MatmulColumns& columns, const CudaSegment& w) {
    const QuantKernels kernels = kernels_of(w.place.dtype, token_tiles(columns.x.rows));
    launch(kernels.gated,
           {dim3(unsigned(out.cols / kGroup)), dim3(kGatedWarps * 32), *queue_, kernels.gated_name},
           quant_task(columns, w), out);
}

}  // namespace aerie::cuda
