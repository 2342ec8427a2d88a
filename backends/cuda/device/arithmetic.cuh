// Arithmetic that all devices do bit for bit alike: multiplies and adds in a fixed order, never
// fused (see CMakeLists.txt), and integer operations on the bits of floats.
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

// Definitions: core/arithmetic.h and core/arithmetic.cpp.
__device__ inline float reciprocal(float x) {
    float r = __uint_as_float(0x7ef311c7u - __float_as_uint(x));
    for (int i = 0; i < 3; ++i) r = r * (2.0f - x * r);
    return r;
}

__device__ inline float inverse_sqrt(float x) {
    const float half = 0.5f * x;
    float r = __uint_as_float(0x5f3759dfu - (__float_as_uint(x) >> 1));
    for (int i = 0; i < 3; ++i) r = r * (1.5f - (half * r) * r);
    return r;
}

__device__ inline float exp_of(float x) {
    const float clamped = 88.0f < x ? 88.0f : x;
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

__device__ inline float silu(float x) {
    const float least = x < -80.0f ? -80.0f : x;
    return x * reciprocal(1.0f + exp_of(0.0f - least));
}

// The sum over 16 neighbouring lanes of a warp, by the fixed tree; all of them get it.
__device__ inline float sum_of_lanes(float x) {
    for (int distance = kLanes / 2; distance > 0; distance /= 2)
        x = x + __shfl_xor_sync(kAllLanes, x, distance);
    return x;
}

// The bits of |value|. Their order as integers is that of magnitudes; a NaN is above infinity.
__device__ inline unsigned magnitude_of(float value) {
    return __float_as_uint(value) & 0x7fffffffu;
}

// The larger one; b where either is NaN.
__device__ inline float larger(float a, float b) {
    return a > b ? a : b;
}

}  // namespace aerie::cuda
