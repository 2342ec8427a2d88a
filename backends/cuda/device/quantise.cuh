// Groups of 32 values as core/quant.cpp packs them, bit for bit.
#pragma once

#include <cuda_runtime.h>

#include "core/quant.h"
#include "cuda/device/arithmetic.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/device/view.cuh"

namespace aerie::cuda {

// To the nearest of low .. high, ties to even; NaN becomes 0.
__device__ inline int nearest(float value, float low, float high) {
    if (!(value == value)) return 0;
    const float clamped = value < low ? low : value > high ? high : value;
    return int((clamped + 12582912.0f) - 12582912.0f);  // leaves no bits behind the point
}

__device__ inline bool is_sound(float value) {
    return (__float_as_uint(value) & 0x7fffffffu) < 0x7f800000u;
}

// A warp has a value in each lane: they become one group, whose scale is written. The lane's step.
__device__ inline int quantise_group(float* scale, float value) {
    const bool sound = __all_sync(kAllLanes, is_sound(value));
    float largest = __uint_as_float(__float_as_uint(value) & 0x7fffffffu);
    for (int distance = kGroup / 2; distance > 0; distance /= 2)
        largest = larger(__shfl_xor_sync(kAllLanes, largest, distance), largest);
    const bool used = sound && largest >= 0x1p-100f;  // the inverse step must stay finite
    const float inverse = used ? 127 * reciprocal(largest) : 0;
    if (int(threadIdx.x) % kGroup == 0)
        *scale = used ? largest * (1.0f / 127) : sound ? 0.0f : not_a_number();
    return used ? nearest(value * inverse, -127, 127) : 0;
}

// Of the sixteen lanes that this one is among.
__device__ inline int sum_of_scaled(int step) {
    for (int distance = kScaled / 2; distance > 0; distance /= 2)
        step += __shfl_xor_sync(kAllLanes, step, distance);
    return step;
}

// A warp writes its 32 values to columns first .. first + 31, those beyond the last one left out.
__device__ inline void put_activations(const ActivationView& out, int r, int first, float value) {
    const int lane = int(threadIdx.x) % kGroup;
    if (out.quantised) {
        BlockI8G32& to = reinterpret_cast<BlockI8G32*>(out[r])[first / kGroup];
        const int step = quantise_group(&to.scale, value), sum = sum_of_scaled(step);
        to.q[lane] = int8_t(step);
        if (lane % kScaled == 0) to.sums[lane / kScaled] = int16_t(sum);
    } else if (first + lane < out.cols) {
        reinterpret_cast<float*>(out[r])[first + lane] = value;
    }
}

__device__ inline float clamped_to_f16(float step) {
    return step > 65504.0f ? 65504.0f : step < -65504.0f ? -65504.0f : step;
}

// The value that is largest without its sign; the first of several.
__device__ inline float extreme(const float (&values)[kGroup]) {
    float best = 0;
    for (float value : values)
        if (fabsf(value) > fabsf(best)) best = value;
    return best;
}

// One thread packs a group: its scale (f16) and its steps.
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
