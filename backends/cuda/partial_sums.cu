// Adds up the partial sums that a matmul left for the kernel that reads its output next, where that
// kernel cannot do so itself.
#include <algorithm>
#include <utility>

#include "cuda/backend.h"
#include "cuda/device/partial_sums.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

// One block per token and block of rows.
__global__ void __launch_bounds__(kShareRows) add_sums_kernel(PartialSums left) {
    begin_beside();
    const int rows = int(blockIdx.x), token = int(blockIdx.y), place = int(threadIdx.x);
    const int row = rows * kShareRows + place;
    if (row >= left.out.cols) return;
    const SharedRows its = left.blocks[rows];
    const float inverse_scale = left.inverse_scales[token], bias = left.bias_of(row);
    float sum = PartialSums::begin(its);
#pragma unroll 8
    for (int i = 0; i < its.count; ++i) sum = sum + left.sums_of(its, i, token)[place];
    float& value = left.out[token][row];
    value = left.added(value, sum, inverse_scale, bias);
}

bool are_same(const Tensor& a, const Tensor& b) {
    return a.memory == b.memory && a.offset_bytes == b.offset_bytes && a.rows == b.rows &&
           a.cols == b.cols && a.row_stride == b.row_stride;
}

}  // namespace

PartialSums CudaBackend::take_partial_sums() {
    const DeferredReduction left = std::exchange(deferred_reduction_, {});
    const FloatSplitK& split = left.split;
    PartialSums its{left.out,
                    left.accumulate,
                    left.bias,
                    reinterpret_cast<const float*>(packed_),  // the inverse scales of its columns
                    reinterpret_cast<const float*>(split.sums),
                    {}};
    const int blocks = int(split.all / split.steps), steps = int(split.steps);
    for (int i = 0; i < kMostLeftBlocks; ++i) {
        const int rows = std::min(i, blocks - 1), first = split.share_of(rows * steps);
        const int last = split.share_of((rows + 1) * steps - 1);
        its.blocks[i] = {uint16_t(first + rows), uint16_t(last - first + 1)};
    }
    return its;
}

void CudaBackend::add_left_sums() {
    if (!deferred_reduction_.out) return;
    const Tensor out = deferred_reduction_.out;
    const dim3 blocks(unsigned(tiles_of(out.cols, kShareRows)), unsigned(out.rows));
    launch_beside(add_sums_kernel, {blocks, dim3(kShareRows), *queue_, "add_sums"},
                  take_partial_sums());
}

// A norm can add up partial sums where it packs its rows, since it has these in registers.
bool CudaBackend::takes_left_sums(const RmsNorm& norm) const {
    return are_same(deferred_reduction_.out, norm.x) && norm.x.cols <= kMostKept &&
           packing_for(norm.readers, norm.x.rows) != Packing::none;
}
bool CudaBackend::takes_left_sums(const RopeAppend& op) const {
    return are_same(deferred_reduction_.out, op.qkv) && kShareRows % op.shape.head_dim == 0;
}

}  // namespace aerie::cuda
