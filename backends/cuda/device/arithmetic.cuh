// The arithmetic that every device shares, bit for bit: multiplies and adds in a fixed order (never
// fused: see CMakeLists.txt), and integer operations on the bits of floats.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

#include "cuda/device/shared.cuh"

namespace aerie::cuda {

constexpr int kLanes = 16;  // virtual lanes of a sum: element i belongs to lane i % 16
constexpr unsigned kAllLanes = ~0u;

__device__ inline float infinity() {
    return __uint_as_float(0x7f800000u);
}
__device__ inline float not_a_number() {
    return __uint_as_float(0x7fc00000u);
}

// Within 2 units in the last place; 0 below -87.3, the value at 88 above 88, NaN of NaN.
__device__ inline float exponential(float x) {
    const float clamped = x > 88.0f ? 88.0f : x;
    const float shifted = clamped * 1.44269504f + 12582912.0f;  // rounds to an integer
    const float n = shifted - 12582912.0f;
    const float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    const float power = (p * (r * r) + r) + 1.0f;
    const float scale = __uint_as_float((__float_as_uint(shifted) + 127) << 23);
    return x < -87.3f ? 0.0f : power * scale;
}

// The fixed tree over 16 lanes that lie side by side in a warp: all of them get the sum.
__device__ inline float sum_of_lanes(float x) {
    for (int distance = kLanes / 2; distance > 0; distance /= 2)
        x = x + __shfl_xor_sync(kAllLanes, x, distance);
    return x;
}

// The larger one; b where either is NaN.
__device__ inline float larger(float a, float b) {
    return a > b ? a : b;
}

}  // namespace aerie::cuda
