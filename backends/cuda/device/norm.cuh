// Rows over their root mean square, times a weight, by a block of threads a row.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "cuda/device/arithmetic.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/device/view.cuh"

namespace aerie::cuda {

constexpr int kNormThreads = 128;  // virtual lanes of the sum: element i belongs to lane i % 128

// A row by the threads of a block, each with every so many elements from its number on; 0 beyond
// the last. Here in registers ...
template <int each>
struct KeptRow {
    float values[each];

    // take(k, element k) of the first `count`.
    template <class Take>
    __device__ void for_each(int count, const Take& take) const {
#pragma unroll
        for (int j = 0; j < each; ++j) {
            const int k = j * kNormThreads + int(threadIdx.x);
            if (k < count) take(k, values[j]);
        }
    }
};
// ... and here made anew by value(k), each time.
template <int threads, class Value>
struct MadeRow {
    int cols;
    Value value;

    template <class Take>
    __device__ void for_each(int count, const Take& take) const {
#pragma unroll 8
        for (int k = int(threadIdx.x); k < count; k += threads) take(k, k < cols ? value(k) : 0.0f);
    }
};
template <int threads, class Value>
__device__ MadeRow<threads, Value> made_row(int cols, const Value& value) {
    return {cols, value};
}

struct NormedRows {
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
        float squares = 0;
#pragma unroll 4
        for (int i = int(threadIdx.x); i < x.cols; i += kNormThreads)
            squares = squares + x[r][i] * x[r][i];
        return factor_of(squares, space);
    }
    __device__ float value(int r, int i, float factor) const {
        return (x[r][i] * factor) * weight[0][i];
    }

    // use(row) with row r once it is normalised, in registers where `each` elements a thread are
    // all; 0: any number. All loads come before the first sum.
    template <int each, class Use>
    __device__ void with_row(int r, Space& space, const Use& use) const {
        if constexpr (each == 0) {
            begin_beside();
            const float scale = factor(r, space);
            use(made_row<kNormThreads>(x.cols, [&](int k) { return value(r, k, scale); }));
        } else {
            float weights[each];
            const auto load = [&](float(&to)[each], const float* from) {
#pragma unroll
                for (int j = 0; j < each; ++j) {
                    const int k = j * kNormThreads + int(threadIdx.x);
                    to[j] = k < x.cols ? from[k] : 0.0f;
                }
            };
            KeptRow<each> row;
            load(weights, weight[0]);  // no kernel writes those
            begin_beside();
            load(row.values, x[r]);
            float squares = 0;
#pragma unroll
            for (int j = 0; j < each; ++j) squares = squares + row.values[j] * row.values[j];
            const float scale = factor_of(squares, space);
#pragma unroll
            for (int j = 0; j < each; ++j) row.values[j] = (row.values[j] * scale) * weights[j];
            use(row);
        }
    }

  private:
    __device__ float factor_of(float squares, Space& space) const {
        const int thread = int(threadIdx.x);
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
};

// choose(each) with how many elements a thread keeps of rows of so many columns.
template <class Choose>
auto with_kept(int cols, const Choose& choose) {
    return cols <= 32 * kNormThreads   ? choose(std::integral_constant<int, 32>())
           : cols <= 64 * kNormThreads ? choose(std::integral_constant<int, 64>())
                                       : choose(std::integral_constant<int, 0>());
}

}  // namespace aerie::cuda
