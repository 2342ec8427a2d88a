// Quantises groups of 32 values, bit for bit as core/quant.cpp does.
#pragma once

#include <cuda_runtime.h>

#include "core/quant.h"
#include "cuda/device/arithmetic.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/device/view.cuh"

namespace aerie::cuda {

// The nearest integer in low .. high, ties to even; NaN becomes 0.
__device__ inline int nearest(float value, float low, float high) {
    if (!(value == value)) return 0;
    const float clamped = value < low ? low : value > high ? high : value;
    return int((clamped + 12582912.0f) - 12582912.0f);  // rounds the fraction away
}

__device__ inline bool is_sound(float value) {
    return (__float_as_uint(value) & 0x7fffffffu) < 0x7f800000u;
}

// Quantises some groups by a warp; a lane has one value of each. The groups go side by side, so
// that none waits for the shuffles of another.
template <int groups>
struct QuantisedGroups {
    float scales[groups];             // the same in all lanes
    int steps[groups], sums[groups];  // the lane's quantised value; the sum of its half

    __device__ explicit QuantisedGroups(const float (&values)[groups]) {
        bool sound[groups];
        float largest[groups];
#pragma unroll
        for (int j = 0; j < groups; ++j) {
            sound[j] = __all_sync(kAllLanes, is_sound(values[j]));
            largest[j] = __uint_as_float(magnitude_of(values[j]));
        }
        for (int distance = kGroup / 2; distance > 0; distance /= 2)
#pragma unroll
            for (int j = 0; j < groups; ++j)
                largest[j] = larger(__shfl_xor_sync(kAllLanes, largest[j], distance), largest[j]);
        // The inverse of the scale must stay finite.
        const auto is_used = [&](int j) { return sound[j] && largest[j] >= 0x1p-100f; };
#pragma unroll
        for (int j = 0; j < groups; ++j) {
            const float inverse = is_used(j) ? 127 * reciprocal(largest[j]) : 0;
            sums[j] = steps[j] = is_used(j) ? nearest(values[j] * inverse, -127, 127) : 0;
            scales[j] = is_used(j) ? largest[j] * (1.0f / 127) : sound[j] ? 0.0f : not_a_number();
        }
        for (int distance = kScaled / 2; distance > 0; distance /= 2)
#pragma unroll
            for (int j = 0; j < groups; ++j)
                sums[j] += __shfl_xor_sync(kAllLanes, sums[j], distance);
    }
    // The quantised values of four neighbouring lanes.
    __device__ unsigned word(int j) const {
        unsigned word = unsigned(steps[j] & 0xff) << threadIdx.x % 4 * 8;
        word |= __shfl_xor_sync(kAllLanes, word, 1);
        return word | __shfl_xor_sync(kAllLanes, word, 2);
    }
    // The sums of both halves of a group.
    __device__ unsigned word_of_sums(int j) const {
        const unsigned other = unsigned(__shfl_xor_sync(kAllLanes, sums[j], kScaled));
        return (unsigned(sums[j]) & 0xffff) | other << 16;  // in this order only in lanes 0 .. 15
    }
};

// Where a group begins in an ActivationView; beyond its rows or columns nothing is stored.
struct GroupPlace {
    int row, first;
};

// Stores groups of 32 by a warp, group j at place(j); quantises them if `out` is quantised.
template <int groups, class Place>
__device__ inline void put_groups(const ActivationView& out, const float (&values)[groups],
                                  const Place& place) {
    const int lane = int(threadIdx.x) % kGroup;
    if (!out.quantised) {
#pragma unroll
        for (int j = 0; j < groups; ++j) {
            const auto [r, first] = place(j);
            if (r < out.rows && first + lane < out.cols)
                reinterpret_cast<float*>(out[r])[first + lane] = values[j];
        }
        return;
    }
    const QuantisedGroups<groups> quantised(values);
#pragma unroll
    for (int j = 0; j < groups; ++j) {
        const auto [r, first] = place(j);
        if (r >= out.rows || first >= out.cols) continue;
        BlockI8G32& to = reinterpret_cast<BlockI8G32*>(out[r])[first / kGroup];
        to.q[lane] = int8_t(quantised.steps[j]);
        if (lane % kScaled == 0) to.sums[lane / kScaled] = int16_t(quantised.sums[j]);
        if (lane == 0) to.scale = quantised.scales[j];
    }
}
// Stores groups in columns first .. first + 31 of row r, and then every `apart` columns further.
template <int groups>
__device__ inline void put_activations(const ActivationView& out, int r, int first, int apart,
                                       const float (&values)[groups]) {
    put_groups(out, values, [&](int j) { return GroupPlace{r, first + j * apart}; });
}
__device__ inline void put_activations(const ActivationView& out, int r, int first, float value) {
    const float values[1] = {value};
    put_activations(out, r, first, 0, values);
}

__device__ inline float clamped_to_f16(float step) {
    return step > 65504.0f ? 65504.0f : step < -65504.0f ? -65504.0f : step;
}

// The value with the largest magnitude; the first of several.
__device__ inline float extreme(const float (&values)[kGroup]) {
    float best = 0;
    for (float value : values)
        if (fabsf(value) > fabsf(best)) best = value;
    return best;
}

// Quantises a group by one thread; returns its scale as f16.
__device__ inline uint16_t pack_q8(int (&steps)[kGroup], const float (&values)[kGroup]) {
    const uint16_t scale = to_f16(clamped_to_f16(fabsf(extreme(values)) / 127));
    const float step = from_f16(scale), inverse = step > 0 ? 1 / step : 0;
    for (int i = 0; i < kGroup; ++i) steps[i] = nearest(values[i] * inverse, -127, 127);
    return scale;
}

__device__ inline uint16_t pack_q4(int (&steps)[kGroup], const float (&values)[kGroup]) {
    const uint16_t scale = to_f16(clamped_to_f16(extreme(values) / -8));
    const float step = from_f16(scale), inverse = step != 0 ? 1 / step : 0;
    for (int i = 0; i < kGroup; ++i) steps[i] = nearest(values[i] * inverse, -8, 7);
    return scale;
}

}  // namespace aerie::cuda
