// RMS norm of each head of Q and of K.
#include "cuda/backend.h"
#include "cuda/device/norm.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

// One block per row and head; the heads of q come first, then those of k.
__global__ void head_norm_kernel(View<float> qkv, NormedRows q, NormedRows k, int heads) {
    __shared__ NormedRows::Space space;
    const int r = int(blockIdx.y), head = int(blockIdx.x), size = q.x.cols;
    begin_beside();
    NormedRows rows = head < heads ? q : k;
    rows.x.data += head * size;
    const float factor = rows.factor(r, space);
    float* out = qkv[r] + head * size;
    for (int i = int(threadIdx.x); i < size; i += kNormLanes) out[i] = rows.value(r, i, factor);
}

}  // namespace

template <>
void CudaBackend::enqueue(const HeadNorm& op) {
    const AttentionShape& shape = op.shape;
    const Tensor heads = op.qkv.col_range(0, shape.head_dim);
    launch_beside(head_norm_kernel,
                  {dim3(unsigned(shape.heads + shape.kv_heads), unsigned(op.qkv.rows)),
                   dim3(kNormLanes), *queue_, "head_norm"},
                  op.qkv, NormedRows(heads, op.q_weight, op.epsilon),
                  NormedRows(heads, op.k_weight, op.epsilon), shape.heads);
}

}  // namespace aerie::cuda
