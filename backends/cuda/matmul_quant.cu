// Quantised weights times quantised activations on the tensor cores. Dot products of 32 elements
// are exact integers, so only the sum over groups has an order, that of core/quant.h.
#include "cuda/backend.h"
#include "cuda/device/prepared_groups.cuh"
#include "cuda/device/quant_product.cuh"
#include "cuda/device/quantise.cuh"
#include "cuda/launch.h"
#include "cuda/split.h"
#include "cuda/weight.h"

namespace aerie::cuda {

namespace {

template <int tiles>
__device__ void put(const MatmulOutput& output, float (&total)[tiles][4]) {
    const int first_tile = int(blockIdx.x) * kBlockTiles;
    if constexpr (tiles == 1)
        if (output.is_rotated()) return put_rotated(output, first_tile, total[0]);
    output.put_tiles<tiles>(total, 0, first_tile + int(threadIdx.x) / 32);
}

template <class Format, int tiles>
__global__ void __launch_bounds__(kBlockThreads, (kBlocks<Format, tiles>))
    multiply_kernel(QuantTask task, MatmulOutput output) {
    float total[tiles][4] = {};
    const int last = output.out.rows - 1;
    if (multiply_rows<Format>(total, task, [&](int token) { return min(token, last); }))
        put(output, total);
}

// For one token, which each block makes ready for itself.
template <class Format>
__global__ void __launch_bounds__(kBlockThreads, (kBlocks<Format, 1>))
    multiply_row_kernel(QuantTask task, MatmulOutput output, RowTask row) {
    __shared__ typename PreparedGroups<Format>::Space space;
    PreparedGroups<Format> columns(space, row);
    float total[1][4] = {};
    if (multiply_groups<Format>(total, task, columns)) put(output, total);
}

// The epilogue that gates: each warp of a block has 8 columns of silu(gate) * up of a paired
// weight, and four warps have a group.
template <int tiles>
__device__ void put_gated(const ActivationView& out, const float (&total)[tiles][4]) {
    constexpr int kCols = kBlockRows / 2, kGroups = kCols / kGroup;
    __shared__ SharedArray<float, kTokenTile * kCols> gated;
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
#pragma unroll
    for (int n = 0; n < tiles; ++n) {
        for (int i = 0; i < 2; ++i)
            gated[(lane % 4 * 2 + i) * kCols + warp * 8 + lane / 4] =
                silu(total[n][i]) * total[n][2 + i];
        __syncthreads();
        for (int i = warp; i < kTokenTile * kGroups; i += kBlockTiles) {
            const int token = n * kTokenTile + i / kGroups;
            const int first = int(blockIdx.x) * kCols + i % kGroups * kGroup;
            if (token < out.rows && first < out.cols)
                put_activations(out, token, first, gated[i * kGroup + lane]);
        }
        __syncthreads();
    }
}

template <class Format, int tiles>
__global__ void __launch_bounds__(kBlockThreads, (kBlocks<Format, tiles>))
    gated_kernel(QuantTask task, ActivationView out) {
    float total[tiles][4] = {};
    const int last = out.rows - 1;
    if (multiply_rows<Format>(total, task, [&](int token) { return min(token, last); }))
        put_gated(out, total);
}

template <class Format>
__global__ void __launch_bounds__(kBlockThreads, (kBlocks<Format, 1>))
    gated_row_kernel(QuantTask task, ActivationView out, RowTask row) {
    __shared__ typename PreparedGroups<Format>::Space space;
    PreparedGroups<Format> columns(space, row);
    float total[1][4] = {};
    if (multiply_groups<Format>(total, task, columns)) put_gated(out, total);
}

auto kernel_of(DType type, int tiles) {
    return with_format(type, [&](auto format) {
        using Format = decltype(format);
        return with_token_tiles(tiles, [](auto count) {
            return NamedKernel{multiply_kernel<Format, count.value>,
                               Ring<QuantStep<Format, count.value>>::kBytes, Format::kMatmul};
        });
    });
}
auto gated_kernel_of(DType type, int tiles) {
    return with_format(type, [&](auto format) {
        using Format = decltype(format);
        return with_token_tiles(tiles, [](auto count) {
            return NamedKernel{gated_kernel<Format, count.value>,
                               Ring<QuantStep<Format, count.value>>::kBytes, Format::kGated};
        });
    });
}

auto row_kernel_of(DType type) {
    return with_format(type, [](auto format) {
        using Format = decltype(format);
        return NamedKernel{multiply_row_kernel<Format>, Ring<WeightWords<Format>>::kBytes,
                           Format::kMatmul};
    });
}
auto gated_row_kernel_of(DType type) {
    return with_format(type, [](auto format) {
        using Format = decltype(format);
        return NamedKernel{gated_row_kernel<Format>, Ring<WeightWords<Format>>::kBytes,
                           Format::kGated};
    });
}

template <class Kernel, class... Arguments>
void launch_blocks(const Kernel& named, const CudaSegment& w, const QuantTask& task, Queue& queue,
                   const Arguments&... arguments) {
    const dim3 blocks(unsigned(tiles_of(w.place.rows, kBlockRows)), task.split.blocks);
    launch_beside(named.kernel,
                  {blocks, dim3(kBlockThreads), queue, named.name, named.shared_bytes}, task,
                  arguments...);
}

}  // namespace

// Quantises the columns, if that was not done yet.
QuantTask CudaBackend::quant_task(MatmulColumns& columns, const CudaSegment& w) {
    if (!columns.deferred.x && columns.x.dtype == DType::F32 && !columns.quantised) {
        columns.quantised = dense_prefix(quantised_, columns.x.rows, columns.x.cols);
        execute(Copy{columns.quantised, columns.x});
    }
    const Tensor& x = columns.quantised ? columns.quantised : columns.x;
    return {
        reinterpret_cast<const uint4*>(w.data),
        row<const std::byte>(x, 0),
        size_bytes(x.dtype, size_t(x.row_stride)),
        w.cols / kGroup,
        tiles_of(w.place.rows, kTileRows),
        split_.split_quantised(tiles_of(w.place.rows, kBlockRows), w.cols, token_tiles(x.rows))};
}

void CudaBackend::multiply_quantised(const MatmulOutput& output, MatmulColumns& columns,
                                     const CudaSegment& w) {
    const QuantTask task = quant_task(columns, w);
    const DType type = w.place.dtype;
    if (columns.deferred.x)
        launch_blocks(row_kernel_of(type), w, task, *queue_, output, row_task(columns));
    else
        launch_blocks(kernel_of(type, token_tiles(columns.x.rows)), w, task, *queue_, output);
}

void CudaBackend::multiply_gated(const Tensor& out, MatmulColumns& columns, const CudaSegment& w) {
    const QuantTask task = quant_task(columns, w);
    const DType type = w.place.dtype;
    if (columns.deferred.x)
        launch_blocks(gated_row_kernel_of(type), w, task, *queue_, out, row_task(columns));
    else
        launch_blocks(gated_kernel_of(type, token_tiles(columns.x.rows)), w, task, *queue_, out);
}

}  // namespace aerie::cuda
