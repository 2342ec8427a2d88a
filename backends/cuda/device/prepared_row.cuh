// The only row of a matmul, which each of its blocks makes ready for itself in shared memory:
// normalised, then cut into parts or quantised as the weight needs it. This saves a kernel before
// the matmul, and the first weights are copied meanwhile. The block holds 1,024 columns at a time,
// so rows may be of any length.
#pragma once

#include "cuda/device/norm.cuh"
#include "cuda/split.h"

namespace aerie::cuda {

struct RowTask {
    NormedRows rows;    // row 0 of them; without a norm weight it is taken as it is
    const float* amax;  // amax values of a row that is not normalised, or null
    int amax_count;

    __device__ bool is_normed() const { return rows.weight.data != nullptr; }
    // Loads elements place(0), place(1) ... and normalises them; all loads start before the first
    // result is needed. Elements beyond the last are 0. For a row that is not normalised, `factor`
    // is 1.
    template <int count, class Place>
    __device__ void take(float (&values)[count], float factor, const Place& place) const {
        const float *x = rows.x[0], *weight = is_normed() ? rows.weight[0] : x;
        const int cols = rows.x.cols;
        float weights[count];
#pragma unroll
        for (int i = 0; i < count; ++i) {
            const int k = min(place(i), cols - 1);
            values[i] = x[k];
            weights[i] = weight[k];
        }
#pragma unroll
        for (int i = 0; i < count; ++i) {
            const float value = (values[i] * factor) * (is_normed() ? weights[i] : 1.0f);
            values[i] = place(i) < cols ? value : 0.0f;
        }
    }
};

}  // namespace aerie::cuda
