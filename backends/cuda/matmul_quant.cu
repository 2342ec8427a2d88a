// Quantised weights times quantised activations on the tensor cores. Dot products of 32 elements
// are exact integers, so only the sum over groups has an order, that of core/quant.h.
#include "cuda/backend.h"
#include "cuda/device/quant_product.cuh"
#include "cuda/device/quantise.cuh"
#include "cuda/launch.h"
#include "cuda/split.h"
#include "cuda/weight.h"

namespace aerie::cuda {

namespace {

template <class Format, int tiles>
__global__ void __launch_bounds__(kBlockThreads, (kBlocks<Format, tiles>))
    multiply_kernel(QuantTask task, MatmulOutput output) {
    float total[tiles][4] = {};
    const int last = output.out.rows - 1;
    if (!multiply_rows<Format>(total, task, [&](int token) { return min(token, last); })) return;
    if constexpr (tiles == 1)
        if (output.is_rotated()) return put_rotated(output, total[0]);
    const int row_tile = int(blockIdx.x) * kBlockTiles + int(threadIdx.x) / 32;
#pragma unroll
    for (int n = 0; n < tiles; ++n) output.put_tile(n, row_tile, total[n]);
}

// Each warp of a block has 8 columns of silu(gate) * up of a paired weight: four are a group.
template <class Format, int tiles>
__global__ void __launch_bounds__(kBlockThreads, (kBlocks<Format, tiles>))
    gated_kernel(QuantTask task, ActivationView out) {
    constexpr int kCols = kBlockRows / 2, kGroups = kCols / kGroup;
    __shared__ SharedArray<float, kTokenTile * kCols> gated;
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, last = out.rows - 1;
    float total[tiles][4] = {};
    if (!multiply_rows<Format>(total, task, [&](int token) { return min(token, last); })) return;
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

dim3 blocks_of(const CudaSegment& w, const Split& split) {
    return dim3(unsigned(tiles_of(w.place.rows, kBlockRows)), split.parts);
}

}  // namespace

// Quantises the columns, where that was not done yet.
QuantTask CudaBackend::quant_task(MatmulColumns& columns, const CudaSegment& w) {
    if (columns.x.dtype == DType::F32 && !columns.quantised) {
        columns.quantised = dense_prefix(quantised_, columns.x.rows, columns.x.cols);
        execute(Copy{columns.quantised, columns.x});
    }
    const Tensor& x = columns.quantised ? columns.quantised : columns.x;
    return {reinterpret_cast<const uint4*>(w.data),
            row<const std::byte>(x, 0),
            size_bytes(x.dtype, size_t(x.row_stride)),
            w.cols / kGroup,
            tiles_of(w.place.rows, kTileRows),
            split_.of(tiles_of(w.place.rows, kBlockRows), w.cols, token_tiles(x.rows))};
}

void CudaBackend::multiply_quantised(const MatmulOutput& output, MatmulColumns& columns,
                                     const CudaSegment& w) {
    const auto [kernel, shared_bytes, name] = kernel_of(w.place.dtype, token_tiles(columns.x.rows));
    const QuantTask task = quant_task(columns, w);
    launch_beside(kernel,
                  {blocks_of(w, task.split), dim3(kBlockThreads), *queue_, name, shared_bytes},
                  task, output);
}

void CudaBackend::multiply_gated(const Tensor& out, MatmulColumns& columns, const CudaSegment& w) {
    const auto [kernel, shared_bytes, name] =
        gated_kernel_of(w.place.dtype, token_tiles(columns.x.rows));
    const QuantTask task = quant_task(columns, w);
    launch_beside(kernel,
                  {blocks_of(w, task.split), dim3(kBlockThreads), *queue_, name, shared_bytes},
                  task, out);
}

}  // namespace aerie::cuda
