// Quantised weights times quantised activations on the tensor cores. Dot products of 32 elements
// are exact integers, so only the sum over groups has an order, that of core/quant.h.
#include "cuda/backend.h"
#include "cuda/device/norm.cuh"
#include "cuda/device/quant_product.cuh"
#include "cuda/device/quantise.cuh"
#include "cuda/launch.h"
#include "cuda/scratch.h"
#include "cuda/weight.h"

namespace aerie::cuda {

namespace {

constexpr int kGatedWarps = 4;  // their rings are shorter: shared memory is that of a block
// Blocks at a time that registers are left for: most tokens and groups want more of them.
template <class Format, int tiles>
constexpr int kGatedBlocks = tiles == 8 && Format::kLayout.groups == 8 ? 2 : 3;

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
    reinterpret_cast<uint32_t*>(to)[lane * 2 + word / 4] = here ? words[kStepWord + word] : 0;
    float* scale = packed_scale(to, column);
    if (word == 0) scale[0] = here ? __uint_as_float(words[0]) : 0.0f;
    if (word == 1) scale[kPackedSum] = here ? sum_of_halves(words[kSumsWord]) : 0.0f;
}

// A block a token, as pack_columns_kernel packs its quantised row.
__global__ void pack_normed_kernel(std::byte* packed, NormedRows rows, int groups) {
    __shared__ NormedRows::Space space;
    const int token = int(blockIdx.x), lane = int(threadIdx.x) % kGroup;
    const int column = token % kTokenTile, word = lane / 4;
    const bool here = token < rows.x.rows;
    const float factor = here ? rows.factor(token, space) : 0.0f;
    const auto load = [&](int i) {
        const float value = rows.value(min(token, rows.x.rows - 1), i, factor);
        return here ? value : 0.0f;
    };
    for_elements(groups * kGroup, load, [&](int i, float value) {
        std::byte* to = packed_group(packed, token / kTokenTile, i / kGroup, groups);
        int8_t* steps = reinterpret_cast<int8_t*>(to) + (column * 4 + word % 4) * 8 + word / 4 * 4;
        float* scale = packed_scale(to, column);
        const int step = quantise_group(scale, value), half = sum_of_scaled(step);
        const int sum = half + __shfl_xor_sync(kAllLanes, half, kScaled);
        steps[lane % 4] = int8_t(step);
        if (lane == 0) scale[kPackedSum] = float(sum);
    });
}

template <class Format, int tiles>
__global__ void __launch_bounds__(32) multiply_kernel(QuantTask task, MatmulOutput output) {
    __shared__ QuantRing<Format, kGroupsAhead> ring;
    float total[tiles][4] = {};
    multiply_rows<Format>(total, ring, task, int(blockIdx.x), TokensInOrder<tiles>{task});
#pragma unroll
    for (int n = 0; n < tiles; ++n) output.put_tile(n, int(blockIdx.x), total[n]);
}

// Four warps of a paired weight: each has 8 columns of silu(gate) * up, together they are a group.
template <class Format, int tiles>
__global__ void __launch_bounds__(kGatedWarps * 32, (kGatedBlocks<Format, tiles>))
    gated_kernel(QuantTask task, ActivationView out) {
    __shared__ QuantRing<Format, kGroupsAhead / 2> rings[kGatedWarps];
    __shared__ SharedArray<float, kTokenTile * kGroup> gated;
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    float total[tiles][4] = {};
    multiply_rows<Format>(total, rings[warp], task, int(blockIdx.x) * kGatedWarps + warp,
                          TokensInOrder<tiles>{task});
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

template <class Kernel>
struct NamedKernel {
    Kernel kernel;
    const char* name;
};
auto kernel_of(DType type, int tiles) {
    return with_format(type, [&](auto format) {
        using Format = decltype(format);
        return with_token_tiles(tiles, [](auto count) {
            return NamedKernel{multiply_kernel<Format, count.value>, Format::kMatmul};
        });
    });
}
auto gated_kernel_of(DType type, int tiles) {
    return with_format(type, [&](auto format) {
        using Format = decltype(format);
        return with_token_tiles(tiles, [](auto count) {
            return NamedKernel{gated_kernel<Format, count.value>, Format::kGated};
        });
    });
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
    const auto [kernel, name] = kernel_of(w.place.dtype, token_tiles(columns.x.rows));
    launch(kernel, {dim3(unsigned(tiles_of(w.place.rows, kTileRows))), dim3(32), *queue_, name},
           quant_task(columns, w), output);
}

void CudaBackend::multiply_gated(const Tensor& out, MatmulColumns& columns, const CudaSegment& w) {
    const auto [kernel, name] = gated_kernel_of(w.place.dtype, token_tiles(columns.x.rows));
    launch(kernel, {dim3(unsigned(out.cols / kGroup)), dim3(kGatedWarps * 32), *queue_, name},
           quant_task(columns, w), out);
}

}  // namespace aerie::cuda
