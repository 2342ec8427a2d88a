// Ops Gated, Add and Copy: element by element, one warp per group of 32.
#include "cuda/backend.h"
#include "cuda/device/packed.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/device/quantise.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

constexpr int kThreads = 128;

__device__ int first_column() {
    const int thread = int(blockIdx.x * blockDim.x + threadIdx.x);
    return thread - int(threadIdx.x) % kGroup;
}

__global__ void swiglu_kernel(ActivationView out, View<const float> gate_up) {
    begin_beside();
    const int r = int(blockIdx.y), first = first_column();
    if (first >= out.cols) return;  // the same for a whole warp
    const int i = first + int(threadIdx.x) % kGroup;
    float value = 0;
    if (i < out.cols) {
        value = silu(gate_up[r][i]) * gate_up[r][out.cols + i];
    }
    put_activations(out, r, first, value);
}

__global__ void copy_kernel(ActivationView out, View<const float> x) {
    begin_beside();
    const int r = int(blockIdx.y), first = first_column();
    if (first >= out.cols) return;
    const int i = first + int(threadIdx.x) % kGroup;
    put_activations(out, r, first, i < out.cols ? x[r][i] : 0.0f);
}

__global__ void add_kernel(View<float> out, View<const float> a, View<const float> b) {
    begin_beside();
    const int r = int(blockIdx.y), i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < out.cols) out[r][i] = a[r][i] + b[r][i];
}

Grid over_elements(const Tensor& out, Queue& queue, const char* op) {
    return {dim3(unsigned(tiles_of(out.cols, kThreads)), unsigned(out.rows)), dim3(kThreads), queue,
            op};
}

}  // namespace

template <>
void CudaBackend::enqueue(const Gated& op) {
    switch (op.activation) {
        case Activation::silu:
            launch_beside(swiglu_kernel, over_elements(op.out, *queue_, "swiglu"), op.out,
                          op.gate_up);
    }
}

template <>
void CudaBackend::enqueue(const Copy& op) {
    launch_beside(copy_kernel, over_elements(op.out, *queue_, "copy"), op.out, op.x);
}

template <>
void CudaBackend::enqueue(const Add& op) {
    launch_beside(add_kernel, over_elements(op.out, *queue_, "add"), op.out, op.a, op.b);
}

}  // namespace aerie::cuda
