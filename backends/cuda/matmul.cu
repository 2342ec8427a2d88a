// Float weights times f32 activations. F16 and BF16 use the tensor cores: activations are cut into
// parts of that type, which together keep all bits (BF16: three parts) or 22 of them (F16: two
// parts, after each row was scaled by a power of two to the middle of the range). F32 uses fused
// multiply-adds.
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/device/float_product.cuh"
#include "cuda/device/prepared_floats.cuh"
#include "cuda/launch.h"
#include "cuda/scratch.h"
#include "cuda/weight.h"

namespace aerie::cuda {

namespace {

template <class Format, int tiles>
__global__ void __launch_bounds__(kBlockThreads, 2) multiply_kernel(FloatTask task) {
    multiply_packed<Format, tiles>(task, [](int token) { return token; });
}

// For more than 32 tokens: one wide block per multiprocessor, so that it loads them once.
template <class Format>
__global__ void __launch_bounds__(kWideTiles * 32, 1) multiply_wide_kernel(FloatTask task) {
    multiply_packed<Format, kMaxTiles, kWideTiles>(task, [](int token) { return token; });
}

// For one token, which each block makes ready for itself.
template <class Format>
__global__ void __launch_bounds__(kBlockThreads, 2)
    multiply_row_kernel(FloatTask task, RowTask row) {
    __shared__ typename PreparedFloats<Format>::Space space;
    PreparedFloats<Format> columns(space, row);
    multiply_floats<Format>(task, columns);
}

template <class Format>
auto kernel_of(int tiles) {
    return with_token_tiles(tiles, [](auto count) {
        return BlockKernel{multiply_kernel<Format, count.value>,
                           FloatRing<Format, count.value>::kBytes};
    });
}

__global__ void __launch_bounds__(32)
    multiply_f32_kernel(MatmulOutput output, View<const float> x, const float* weight) {
    begin_beside();
    multiply_f32(output, x, weight, int(blockIdx.y) * kF32Tokens,
                 [&](int token) { return min(token, x.rows - 1); });
}

// The packed columns in scratch: the inverse scales of rows, then the parts.
PackedColumns columns_in(std::byte* scratch) {
    return {reinterpret_cast<uint2*>(scratch + kRowScaleBytes), reinterpret_cast<float*>(scratch)};
}

template <class Format>
void pack_columns(std::byte* scratch, const Tensor& x, Queue& queue) {
    launch_beside(pack_columns_kernel<Format>,
                  {dim3(unsigned(x.rows)), dim3(kPackThreads), queue, "pack_columns"},
                  columns_in(scratch), x);
}
template <class Format, class Sums>
void norm_columns(std::byte* scratch, const NormedRows& rows, const Sums& sums, Queue& queue) {
    with_kept(rows.x.cols, [&](auto each) {
        if constexpr (each.value > 0 ||
                      std::is_same_v<Sums, NoPartialSums>)  // see takes_partial_sums
            launch_beside(
                norm_columns_kernel<Format, each.value, Sums>,
                {dim3(unsigned(rows.x.rows)), dim3(kPackThreads), queue, "rms_norm_columns"},
                columns_in(scratch), rows, sums);
    });
}

template <class Format>
void multiply_columns(const MatmulOutput& output, std::byte* scratch, const CudaSegment& w,
                      const SplitPlan& plan, Queue& queue) {
    const int tiles = token_tiles(output.out.rows), row_tiles = tiles_of(w.place.rows, kTileRows);
    const auto [columns, inverse_scales] = columns_in(scratch);
    const FloatTask task{reinterpret_cast<const uint4*>(w.data),
                         columns,
                         inverse_scales,
                         float_tiles(w.cols),
                         row_tiles,
                         output,
                         plan.split_floats(w.place.rows, w.cols)};
    const auto launch_blocks = [&](const auto& kernel, unsigned blocks, int block_tiles) {
        launch_beside(kernel.kernel,
                      {dim3(blocks), dim3(unsigned(block_tiles) * 32), queue, Format::kName,
                       kernel.shared_bytes},
                      task);
    };
    const BlockKernel wide{multiply_wide_kernel<Format>,
                           FloatRing<Format, kMaxTiles, kWideTiles>::kBytes};
    if (tiles == kMaxTiles && wide.shared_bytes <= plan.block_bytes)
        launch_blocks(wide, task.split.ranges, kWideTiles);
    else
        launch_blocks(kernel_of<Format>(tiles), task.split.ranges * kRangeBlocks, kBlockTiles);
}

template <class Format>
void multiply_row(const MatmulOutput& output, const RowTask& row, const CudaSegment& w,
                  const SplitPlan& plan, float* amax, Queue& queue) {
    const int row_tiles = tiles_of(w.place.rows, kTileRows);
    const FloatSplitK split = plan.split_floats(w.place.rows, w.cols);
    launch_beside(multiply_row_kernel<Format>,
                  {dim3(split.ranges * kRangeBlocks), dim3(kBlockThreads), queue, Format::kName,
                   PreparedFloats<Format>::Ring::kBytes},
                  FloatTask{reinterpret_cast<const uint4*>(w.data), nullptr, nullptr,
                            float_tiles(w.cols), row_tiles, output, split, amax},
                  row);
}

}  // namespace

void CudaBackend::multiply(const MatmulOutput& output, MatmulColumns& columns, const CudaSegment& w,
                           const Consumers& consumers) {
    if (w.cols > limits_.widest)
        return queue_->refuse("matmul", "wider activations than were reserved");
    if (is_quantised(w.place.dtype)) return multiply_quantised(output, columns, w);
    const Tensor& x = columns.x;
    const Packing wanted = packing_of(w.place.dtype);
    const bool f16 = wanted == Packing::f16;
    if (wanted != Packing::none && x.rows == 1) {
        const RowTask row = row_task(columns);
        float* const amax = defer_amax(tiles_of(w.place.rows, kTileRows), consumers);
        return f16 ? multiply_row<F16>(output, row, w, split_, amax, *queue_)
                   : multiply_row<BF16>(output, row, w, split_, amax, *queue_);
    }
    if (wanted != Packing::none) {
        if (columns.deferred.packed != wanted)
            f16 ? pack_columns<F16>(packed_, x, *queue_) : pack_columns<BF16>(packed_, x, *queue_);
        columns.deferred.packed = wanted;
        return f16 ? multiply_columns<F16>(output, packed_, w, split_, *queue_)
                   : multiply_columns<BF16>(output, packed_, w, split_, *queue_);
    }
    const dim3 blocks(unsigned(tiles_of(w.place.rows, kF32Rows)),
                      unsigned(tiles_of(x.rows, kF32Tokens)));
    launch_beside(multiply_f32_kernel, {blocks, dim3(32), *queue_, "matmul_f32"}, output, x,
                  reinterpret_cast<const float*>(w.data));
}

void CudaBackend::pack_normed(Packing packing, const RmsNorm& norm) {
    const NormedRows rows(norm.x, norm.weight, norm.epsilon);
    const auto pack = [&](const auto& sums) {
        packing == Packing::f16 ? norm_columns<F16>(packed_, rows, sums, *queue_)
                                : norm_columns<BF16>(packed_, rows, sums, *queue_);
    };
    deferred_reduction_.out ? pack(take_partial_sums()) : pack(NoPartialSums());
}

}  // namespace aerie::cuda
