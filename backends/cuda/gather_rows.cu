// Copies rows, chosen by index, to a new tensor.
#include "cuda/backend.h"
#include "cuda/device/packed.cuh"
#include "cuda/device/view.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

constexpr int kThreads = 128;

__global__ void gather_kernel(View<float> out, View<const float> x, View<const int32_t> index) {
    const int r = int(blockIdx.y), i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < out.cols) out[r][i] = x[index[0][r]][i];
}

}  // namespace

template <>
void CudaBackend::enqueue(const GatherRows& op) {
    const dim3 blocks(unsigned(tiles_of(op.out.cols, kThreads)), unsigned(op.out.rows));
    launch(gather_kernel, {blocks, dim3(kThreads), *queue_, "gather_rows"}, op.out, op.x, op.index);
}

}  // namespace aerie::cuda
