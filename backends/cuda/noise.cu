// Gumbel noise of some positions, bit for bit as gumbel() of core/rng.cpp.
#include "cuda/backend.h"
#include "cuda/device/arithmetic.cuh"
#include "cuda/device/packed.cuh"
#include "cuda/device/view.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

constexpr int kThreads = 128;
constexpr int kTokens = 4;  // tokens of a Philox counter: token, + 16, + 32 and + 48

__device__ uint4 philox(uint64_t key, uint4 c) {
    uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint32_t a = __umulhi(0xD2511F53u, c.x), b = __umulhi(0xCD9E8D57u, c.z);
        c = make_uint4(b ^ c.y ^ k0, 0xCD9E8D57u * c.z, a ^ c.w ^ k1, 0xD2511F53u * c.x);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

__device__ float unit(uint32_t bits) {
    const float value = float(bits >> 16) * 65536.0f + float(bits & 0xffff);
    return (value + 0.5f) * 0x1p-32f;
}

__device__ float log_parts(float f, float exponent) {
    const float z = f * f;
    float p = 7.0376836292e-2f;
    p = p * f + -1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f + -1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f + -1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f + -2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    float y = f * (z * p);
    y = y + exponent * -2.12194440e-4f;
    y = y + -0.5f * z;
    return (f + y) + exponent * 0.693359375f;
}

__device__ float log_positive(float x) {
    const uint32_t shifted = __float_as_uint(x) - 0x3f3504f3u;
    const int32_t exponent = int32_t(shifted) >> 23;
    const float mantissa = __uint_as_float((shifted & 0x007fffffu) + 0x3f3504f3u);
    return log_parts(mantissa - 1.0f, float(exponent));
}

__device__ float gumbel_of(uint32_t word) {
    const float u = unit(word);
    const float e = -(u < 0.29289f ? log_parts(-u, 0.0f) : log_positive(unit(~word)));
    return -log_positive(e);
}

// One thread per counter.
__global__ void noise_kernel(View<float> out, uint64_t seed, View<const int32_t> positions) {
    const int r = int(blockIdx.y), counter = int(blockIdx.x * blockDim.x + threadIdx.x);
    const uint4 words =
        philox(seed, make_uint4(unsigned(counter), unsigned(positions[0][r]), 0, 0));
    const uint32_t word[kTokens] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int i = 0; i < kTokens; ++i) {
        const int token = counter / 16 * 64 + i * 16 + counter % 16;
        if (token < out.cols) out[r][token] = gumbel_of(word[i]);
    }
}

}  // namespace

template <>
void CudaBackend::enqueue(const Noise& op) {
    const int counters = tiles_of(op.out.cols, 64) * 16;
    const dim3 blocks(unsigned(tiles_of(counters, kThreads)), unsigned(op.out.rows));
    launch(noise_kernel, {blocks, dim3(kThreads), *queue_, "noise"}, op.out, op.seed, op.positions);
}

}  // namespace aerie::cuda
