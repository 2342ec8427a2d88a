// The one row of a matmul, made ready by each of its blocks for itself, in shared memory:
// normalised, then cut or quantised as the weight wants it. That spares a kernel before the matmul,
// whose first weights are on their way meanwhile. It lies there a part at a time, so rows may
// be of any length.
#pragma once

#include "cuda/device/norm.cuh"
#include "cuda/split.h"

namespace aerie::cuda {

struct RowTask {
    NormedRows rows;     // the first of them; without a weight it is taken as it is
    const float* peaks;  // and these are its largest magnitudes; null: its elements tell
    int peak_count;

    __device__ bool is_normed() const { return rows.weight.data != nullptr; }
    // Its elements place(0), place(1) ..., all fetched before the first of them is made; 0 beyond
    // the last one. Of a row that is not normalised the factor is 1.
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
