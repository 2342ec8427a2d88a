// Rows over their root mean square, times a weight, by a block of threads a row.
#pragma once

#include <cuda_runtime.h>

#include "cuda/device/arithmetic.cuh"
#include "cuda/device/view.cuh"

namespace aerie::cuda {

constexpr int kNormThreads = 128;  // virtual lanes of the sum: element i belongs to lane i % 128

// take(i, load(i)) for the elements i < count of a thread's lane, in order; some of them are loaded
// before the first is taken, without a branch: beyond the last one the last again.
template <class Load, class Take>
__device__ void for_elements(int count, const Load& load, const Take& take) {
    constexpr int kAtOnce = 16;
    for (int first = int(threadIdx.x); first < count; first += kAtOnce * kNormThreads) {
        float values[kAtOnce];
#pragma unroll
        for (int n = 0; n < kAtOnce; ++n)
            values[n] = load(min(first + n * kNormThreads, count - 1));
#pragma unroll
        for (int n = 0; n < kAtOnce; ++n)
            if (first + n * kNormThreads < count) take(first + n * kNormThreads, values[n]);
    }
}

struct NormedRows {
    static constexpr const char* kName = "rms_norm_columns";
    View<const float> x, weight;
    float epsilon, inverse_count;

    struct Space {
        SharedArray<float, kNormThreads> lanes;
        SharedArray<float, 1> factor;
    };

    NormedRows(const Tensor& x, const Tensor& weight, float epsilon)
        : x(x), weight(weight), epsilon(epsilon), inverse_count(1.0f / float(x.cols)) {}

    // 1 over the root mean square of a row; the whole block comes here.
    __device__ float factor(int r, Space& space) const {
        const int thread = int(threadIdx.x);
        float squares = 0;
        for_elements(
            x.cols, [&](int i) { return x[r][i]; },
            [&](int, float value) { squares = squares + value * value; });
        space.lanes[thread] = squares;
        __syncthreads();
        if (thread < 32) {  // lanes 64 apart, then 32, 16, 8, 4, 2, 1
            float sum = (float(space.lanes[thread]) + float(space.lanes[thread + 64])) +
                        (float(space.lanes[thread + 32]) + float(space.lanes[thread + 96]));
            sum = sum + __shfl_xor_sync(kAllLanes, sum, kLanes);
            sum = sum_of_lanes(sum);
            if (thread == 0) space.factor[0] = inverse_sqrt(sum * inverse_count + epsilon);
        }
        __syncthreads();
        return space.factor[0];
    }
    __device__ float value(int r, int i, float factor) const {
        return (x[r][i] * factor) * weight[0][i];
    }
};

}  // namespace aerie::cuda
