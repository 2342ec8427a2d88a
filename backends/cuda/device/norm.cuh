// RMS norm, by one block of threads per row: x / sqrt(mean(x^2) + epsilon) * weight.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "cuda/device/arithmetic.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/device/view.cuh"

namespace aerie::cuda {

constexpr int kNormLanes = 128;   // virtual lanes of the sum: element i is in lane i % 128
constexpr int kRowThreads = 512;  // threads of a block that has a row

constexpr int kMaxKept = 16 * kRowThreads;  // elements that it can keep in registers

constexpr int kTogether = 8;  // elements of a thread at a time
constexpr int kSquares = 32;  // elements that a virtual lane loads before it adds the first square

// A row by the threads of a block: thread t has elements t, t + kThreads ...; 0 beyond the last.
// KeptRow has them in registers.
template <int each>
struct KeptRow {
    static constexpr int kThreads = kRowThreads;
    float values[each];

    // Calls take(k, elements k, k + kThreads ...) for kTogether elements at a time, until the first
    // `count` have come; the last call may have some beyond them.
    template <class Take>
    __device__ void for_some(int count, const Take& take) const {
#pragma unroll
        for (int j = 0; j < each; j += kTogether) {
            const int k = j * kRowThreads + int(threadIdx.x);
            if (k - int(threadIdx.x) >= count) return;
            float some[kTogether];
#pragma unroll
            for (int i = 0; i < kTogether; ++i) some[i] = values[j + i];
            take(k, some);
        }
    }
};
// The same for a row that value(k) computes anew each time; kTogether elements are computed before
// the first of them is taken.
template <int threads, class Value>
struct MadeRow {
    static constexpr int kThreads = threads;
    int cols;
    Value value;

    template <class Take>
    __device__ void for_some(int count, const Take& take) const {
#pragma unroll 1
        for (int k = int(threadIdx.x); k - int(threadIdx.x) < count; k += kTogether * threads) {
            float some[kTogether];
#pragma unroll
            for (int i = 0; i < kTogether; ++i)
                some[i] = k + i * threads < cols ? value(k + i * threads) : 0.0f;
            take(k, some);
        }
    }
};
// Calls take(k, element k) for the first `count` elements.
template <class Row, class Take>
__device__ void for_each(const Row& row, int count, const Take& take) {
    row.for_some(count, [&](int k, const float(&some)[kTogether]) {
#pragma unroll
        for (int i = 0; i < kTogether; ++i)
            if (k + i * Row::kThreads < count) take(k + i * Row::kThreads, some[i]);
    });
}
template <int threads, class Value>
__device__ MadeRow<threads, Value> made_row(int cols, const Value& value) {
    return {cols, value};
}

struct NormedRows {
    View<const float> x, weight;
    float epsilon, inverse_count;

    struct Space {
        SharedArray<float, kNormLanes> lanes;
        SharedArray<float, 1> factor;
    };

    NormedRows(const Tensor& x, const Tensor& weight, float epsilon)
        : x(x), weight(weight), epsilon(epsilon), inverse_count(1.0f / float(x.cols)) {}

    // 1 / sqrt(mean(x^2) + epsilon) of row r. The whole block calls it, with at least kNormLanes
    // threads.
    __device__ float factor(int r, Space& space) const {
        const auto sum_of = [&](int lane) {
            float sum = 0;
#pragma unroll 1
            for (int first = lane; first - lane < x.cols; first += kSquares * kNormLanes) {
                float some[kSquares];
#pragma unroll
                for (int i = 0; i < kSquares; ++i) {
                    const int k = first + i * kNormLanes;
                    some[i] = k < x.cols ? x[r][k] : 0.0f;
                }
#pragma unroll
                for (int i = 0; i < kSquares; ++i) sum = sum + some[i] * some[i];
            }
            return sum;
        };
        return factor_of(sum_of, space);
    }
    __device__ float value(int r, int i, float factor) const {
        return (x[r][i] * factor) * weight[0][i];
    }

    // Calls use(row) with row r, normalised by kRowThreads threads. If `each` is not 0, each thread
    // keeps that many elements in registers, which must be all of the row, and complete(them) is
    // called before they are normalised. If it is 0, the row may be of any length.
    template <int each, class Use, class Complete>
    __device__ void with_row(int r, Space& space, const Use& use, const Complete& complete) const {
        if constexpr (each == 0) {
            begin_beside();
            const float scale = factor(r, space);
            use(made_row<kRowThreads>(x.cols, [&](int k) { return value(r, k, scale); }));
        } else {
            __shared__ SharedArray<float, each * kRowThreads> squares;
            float weights[each];
            KeptRow<each> row;
            const auto load = [&](float(&to)[each], const float* from) {
#pragma unroll
                for (int j = 0; j < each; ++j) {
                    const int k = j * kRowThreads + int(threadIdx.x);
                    to[j] = k < x.cols ? from[k] : 0.0f;
                }
            };
            load(weights, weight[0]);  // no kernel writes norm weights
            begin_beside();
            load(row.values, x[r]);
            complete(row.values);
#pragma unroll
            for (int j = 0; j < each; ++j)
                squares[j * kRowThreads + int(threadIdx.x)] = row.values[j] * row.values[j];
            __syncthreads();
            const auto sum_of = [&](int lane) {
                float sum = 0;
#pragma unroll 8
                for (int i = lane; i < x.cols; i += kNormLanes) sum = sum + squares[i];
                return sum;
            };
            const float scale = factor_of(sum_of, space);
#pragma unroll
            for (int j = 0; j < each; ++j) row.values[j] = (row.values[j] * scale) * weights[j];
            use(row);
        }
    }
    template <int each, class Use>
    __device__ void with_row(int r, Space& space, const Use& use) const {
        with_row<each>(r, space, use, [](const auto&) {});
    }

  private:
    // The factor of a row; sum_of(lane) is the sum of a virtual lane's squares in ascending order.
    template <class SumOf>
    __device__ float factor_of(const SumOf& sum_of, Space& space) const {
        const int thread = int(threadIdx.x);
        if (thread < kNormLanes) space.lanes[thread] = sum_of(thread);
        __syncthreads();
        if (thread < 32) {  // the fixed tree: lanes 64 apart, then 32, 16, 8, 4, 2, 1
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

// Calls choose(each) with the number of elements that a thread keeps of rows of `cols` columns, as
// a constant; 0: rows are too long for registers.
template <class Choose>
auto with_kept(int cols, const Choose& choose) {
    return cols <= 8 * kRowThreads ? choose(std::integral_constant<int, 8>())
           : cols <= kMaxKept      ? choose(std::integral_constant<int, 16>())
                                   : choose(std::integral_constant<int, 0>());
}

}  // namespace aerie::cuda
