// Rows over their root mean square, times a weight.
#include "cuda/backend.h"
#include "cuda/device/quantise.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

constexpr int kThreads = 128;  // the virtual lanes of the sum: element i belongs to lane i % 128

// A block a row.
__global__ void rms_norm_kernel(ActivationView out, View<const float> x, View<const float> weight,
                                float epsilon, float inverse_count) {
    __shared__ SharedArray<float, kThreads> lanes;
    __shared__ SharedArray<float, 1> scale;
    const int r = int(blockIdx.x), thread = int(threadIdx.x);
    float squares = 0;
#pragma unroll 4
    for (int i = thread; i < x.cols; i += kThreads) squares = squares + x[r][i] * x[r][i];
    lanes[thread] = squares;
    __syncthreads();
    if (thread < 32) {  // lanes 64 apart, then 32, 16, 8, 4, 2, 1
        float sum = (float(lanes[thread]) + float(lanes[thread + 64])) +
                    (float(lanes[thread + 32]) + float(lanes[thread + 96]));
        sum = sum + __shfl_xor_sync(kAllLanes, sum, kLanes);
        sum = sum_of_lanes(sum);
        if (thread == 0) scale[0] = inverse_sqrt(sum * inverse_count + epsilon);
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
    launch(rms_norm_kernel, {dim3(unsigned(x.rows)), dim3(kThreads), *queue_, "rms_norm"}, out, x,
           weight, epsilon, 1.0f / float(x.cols));
}

}  // namespace aerie::cuda
