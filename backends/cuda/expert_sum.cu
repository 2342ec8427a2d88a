// The products of each row's experts times their weights, summed choice by choice; one thread per
// element.
#include "cuda/backend.h"
#include "cuda/device/packed.cuh"
#include "cuda/device/view.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

constexpr int kThreads = 128;

__global__ void expert_sum_kernel(View<float> out, View<const float> x, View<const float> weights,
                                  bool accumulate) {
    const int r = int(blockIdx.y), i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= out.cols) return;
    const int first = r * weights.cols;
    float sum = weights[r][0] * x[first][i];
    for (int choice = 1; choice < weights.cols; ++choice)
        sum = sum + weights[r][choice] * x[first + choice][i];
    out[r][i] = accumulate ? out[r][i] + sum : sum;
}

}  // namespace

template <>
void CudaBackend::enqueue(const ExpertSum& op) {
    const dim3 blocks(unsigned(tiles_of(op.out.cols, kThreads)), unsigned(op.out.rows));
    launch(expert_sum_kernel, {blocks, dim3(kThreads), *queue_, "expert_sum"}, op.out, op.x,
           op.weights, op.accumulate == Accumulate::yes);
}

}  // namespace aerie::cuda
