// Rotates queries and keys to their positions, and rounds keys and values into the cache; where
// the matmul before does not (multiply.cu).
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/device/rotation.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

constexpr int kMostThreads = 256;

// A block some heads of a row, along y; a thread a pair of elements.
__global__ void __launch_bounds__(kMostThreads) rope_append_kernel(Rotation rotation, int heads) {
    const int r = int(blockIdx.y), head = int(blockIdx.x * blockDim.y + threadIdx.y);
    const int i = int(threadIdx.x), half = rotation.shape.head_dim / 2;
    begin_beside();
    if (head >= heads || i >= half || rotation.row(r).slot < 0) return;
    const float* x = rotation.qkv[r] + head * 2 * half;
    rotation.put(r, head, i, x[i], x[half + i]);
}

}  // namespace

template <>
void CudaBackend::execute(const RopeAppend& op) {
    const AttentionShape& shape = op.shape;
    const int threads = tiles_of(shape.head_dim / 2, 32) * 32;  // whole warps
    const int together = std::max(kMostThreads / threads, 1);
    const int heads = shape.heads + 2 * shape.kv_heads;
    const dim3 blocks(unsigned(tiles_of(heads, together)), unsigned(op.qkv.rows));
    launch_beside(rope_append_kernel,
                  {blocks, dim3(unsigned(threads), unsigned(together)), *queue_, "rope_append"},
                  Rotation(op, op.qkv, op.rows.block), heads);
}

}  // namespace aerie::cuda
