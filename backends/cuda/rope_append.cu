// Rotates queries and keys to their positions, and rounds keys and values into the cache; where
// the matmul before does not (multiply.cu).
#include "cuda/backend.h"
#include "cuda/device/rotation.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

// A block a row and head.
__global__ void rope_append_kernel(Rotation rotation) {
    const int r = int(blockIdx.y), head = int(blockIdx.x), dim = rotation.shape.head_dim;
    begin_beside();
    if (rotation.row(r).slot < 0) return;
    const float* x = rotation.qkv[r] + head * dim;
    for (int i = int(threadIdx.x); i < dim / 2; i += int(blockDim.x))
        rotation.put(r, head, i, x[i], x[dim / 2 + i]);
}

}  // namespace

template <>
void CudaBackend::execute(const RopeAppend& op) {
    const AttentionShape& shape = op.shape;
    const dim3 blocks(unsigned(shape.heads + 2 * shape.kv_heads), unsigned(op.qkv.rows));
    const Grid grid{blocks, dim3(shape.head_dim > 64 ? 64 : 32), *queue_, "rope_append"};
    launch_beside(rope_append_kernel, grid, Rotation(op, op.qkv, op.rows.block));
}

}  // namespace aerie::cuda
