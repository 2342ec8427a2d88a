// Rotates Q and K to their positions, and rounds K and V into the cache, where the matmul before
// does not do so (multiply.cu). The matmul's partial sums, if their reduction was deferred, are
// added up on the way.
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/device/partial_sums.cuh"
#include "cuda/device/rotation.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

constexpr int kMaxThreads = 256;
constexpr int kPairs = 2;  // pairs of elements per thread

// A block has some heads of a row, along y; a thread has kPairs neighbouring pairs of elements.
// take(a, b, row, column, apart) loads the first elements of the pairs, from `column` on, and the
// second ones, `apart` behind them.
template <class Take>
__device__ void rotate(const Rotation& rotation, int heads, const Take& take) {
    const int r = int(blockIdx.y), head = int(blockIdx.x * blockDim.y + threadIdx.y);
    const int i = int(threadIdx.x) * kPairs, half = rotation.shape.head_dim / 2;
    begin_beside();
    if (head >= heads || i >= half) return;
    const int slot = rotation.row(r).slot;
    float a[kPairs], b[kPairs];
    take(a, b, r, head * 2 * half + i, half);
    if (slot >= 0) rotation.put(r, head, i, a, b);
}

__global__ void __launch_bounds__(kMaxThreads) rope_append_kernel(Rotation rotation, int heads) {
    rotate(rotation, heads, [&](auto& a, auto& b, int r, int column, int apart) {
        const float* x = rotation.qkv[r] + column;
        Rotation::take(a, x);
        Rotation::take(b, x + apart);
    });
}
__global__ void __launch_bounds__(kMaxThreads, 2)
    rope_sums_kernel(Rotation rotation, int heads, PartialSums sums) {
    rotate(rotation, heads, [&](auto& a, auto& b, int r, int column, int apart) {
        sums.take(a, b, r, column, apart);
    });
}

}  // namespace

template <>
void CudaBackend::enqueue(const RopeAppend& op) {
    const AttentionShape& shape = op.shape;
    const int threads = tiles_of(shape.head_dim / 2 / kPairs, 32) * 32;  // whole warps
    const int together = std::max(kMaxThreads / threads, 1);
    const int heads = shape.heads + 2 * shape.kv_heads;
    const dim3 blocks(unsigned(tiles_of(heads, together)), unsigned(op.qkv.rows));
    const Rotation rotation(op, op.qkv, op.rows.block);
    const Grid grid{blocks, dim3(unsigned(threads), unsigned(together)), *queue_, "rope_append"};
    if (deferred_reduction_.out)
        launch_beside(rope_sums_kernel, grid, rotation, heads, take_partial_sums());
    else
        launch_beside(rope_append_kernel, grid, rotation, heads);
}

}  // namespace aerie::cuda
