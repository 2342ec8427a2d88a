// Rows over their root mean square, times a weight.
#include "cuda/backend.h"
#include "cuda/device/quantise.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kPart = 4096;  // elements whose squares are in shared memory at a time

// A block a row. The squares are made by all threads and added by sixteen, in the order of the
// virtual lanes.
__global__ void rms_norm_kernel(ActivationView out, View<const float> x, View<const float> weight,
                                float epsilon) {
    __shared__ SharedArray<float, kPart> squares;
    __shared__ SharedArray<float, 1> scale;
    const int r = int(blockIdx.x), thread = int(threadIdx.x);
    float sum = 0;
    for (int first = 0; first < x.cols; first += kPart) {
        const int count = min(kPart, x.cols - first);
        for (int i = thread; i < count; i += kThreads) {
            const float value = x[r][first + i];
            squares[i] = value * value;
        }
        __syncthreads();
        if (thread < kLanes) {
#pragma unroll 8
            for (int i = thread; i < count; i += kLanes) sum = sum + squares[i];
        }
        __syncthreads();
    }
    if (thread < 32) {
        const float mean = sum_of_lanes(sum) / float(x.cols);
        if (thread == 0) scale[0] = 1.0f / sqrtf(mean + epsilon);
    }
    __syncthreads();
    const float factor = scale[0];
    const int lane = thread % kGroup;
    for (int first = thread - lane; first < x.cols; first += kThreads) {
        const int i = first + lane;
        const float value = i < x.cols ? (x[r][i] * factor) * weight[0][i] : 0.0f;
        put_activations(out, r, first, value);
    }
}

}  // namespace

void CudaBackend::do_rms_norm(Tensor out, Tensor x, Tensor weight, float epsilon) {
    launch(rms_norm_kernel, {dim3(unsigned(x.rows)), dim3(kThreads), stream_}, out, x, weight,
           epsilon);
}

}  // namespace aerie::cuda
