// The deferred reduction of a matmul by a kernel of its own, where the kernel that reads the output
// next cannot add up the partial sums itself.
#include <algorithm>
#include <utility>

#include "cuda/backend.h"
#include "cuda/device/partial_sums.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

// One block per token and block of rows.
__global__ void __launch_bounds__(kWideRows) add_sums_kernel(PartialSums sums) {
    begin_beside();
    const int rows = int(blockIdx.x), token = int(blockIdx.y), place = int(threadIdx.x);
    const int row = rows * kWideRows + place;
    if (row >= sums.out.cols) return;
    const BlockSums block = sums.blocks[rows];
    const float inverse_scale = sums.inverse_scales[token], bias = sums.bias_of(row);
    float sum = PartialSums::begin(block);
#pragma unroll 8
    for (int i = 0; i < block.count; ++i) sum = sum + sums.sums_of(block, i, token)[place];
    float& value = sums.out[token][row];
    value = sums.added(value, sum, inverse_scale, bias);
}

bool are_same(const Tensor& a, const Tensor& b) {
    return a.memory == b.memory && a.offset_bytes == b.offset_bytes && a.rows == b.rows &&
           a.cols == b.cols && a.row_stride == b.row_stride;
}

}  // namespace

PartialSums CudaBackend::take_partial_sums() {
    const DeferredReduction reduction = std::exchange(deferred_reduction_, {});
    const FloatSplitK& split = reduction.split;
    PartialSums sums{reduction.out,
                     reduction.accumulate,
                     reduction.bias,
                     reinterpret_cast<const float*>(packed_),  // the inverse scales of its columns
                     reinterpret_cast<const float*>(split.sums),
                     {}};
    const int blocks = int(split.all / split.steps), steps = int(split.steps);
    for (int i = 0; i < kMaxDeferredBlocks; ++i) {
        const int rows = std::min(i, blocks - 1), first = split.range_of(rows * steps);
        const int last = split.range_of((rows + 1) * steps - 1);
        sums.blocks[i] = {uint16_t(first + rows), uint16_t(last - first + 1)};
    }
    return sums;
}

void CudaBackend::finish_reduction() {
    if (!deferred_reduction_.out) return;
    const Tensor out = deferred_reduction_.out;
    const dim3 blocks(unsigned(tiles_of(out.cols, kWideRows)), unsigned(out.rows));
    launch_beside(add_sums_kernel, {blocks, dim3(kWideRows), *queue_, "add_sums"},
                  take_partial_sums());
}

// A norm can add up partial sums where it packs its rows, since it has these in registers.
bool CudaBackend::takes_partial_sums(const RmsNorm& norm) const {
    return are_same(deferred_reduction_.out, norm.x) && norm.x.cols <= kMaxKept &&
           packing_for(norm.consumers, norm.x.rows) != Packing::none;
}
bool CudaBackend::takes_partial_sums(const RopeAppend& op) const {
    return are_same(deferred_reduction_.out, op.qkv) && kWideRows % op.shape.head_dim == 0;
}

}  // namespace aerie::cuda
