// Loops with known trips to memory, for sass_test.py. Each turn of
//   chased_kernel    waits for three loads, one behind the other
//   batched_kernel   asks for eight, then waits once
//   ahead_kernel     uses what the turn before has asked for
//   ring_kernel      has three groups of copies under way while it waits for a fourth
//   late_kernel      waits for the copy that it has just asked for
//   spilling_kernel  has more numbers than registers
#include <cuda_runtime.h>

__global__ void chased_kernel(const int* __restrict__ from, int* out, int n) {
    int at = int(threadIdx.x);
#pragma unroll 1
    for (int i = 0; i < n; ++i) at = from[from[from[at]]];
    out[threadIdx.x] = at;
}

__global__ void batched_kernel(const float* __restrict__ from, float* out, int n) {
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sum += from[i * 256 + j * 32 + int(threadIdx.x)];
    out[threadIdx.x] = sum;
}

__global__ void ahead_kernel(const float* __restrict__ from, float* out, int n) {
    float sum = 0, next = from[threadIdx.x];
#pragma unroll 1
    for (int i = 1; i < n; ++i) {
        const float now = next;
        next = from[i * 32 + int(threadIdx.x)];
        for (int j = 0; j < 40; ++j) sum = sum * now + 1;
    }
    out[threadIdx.x] = sum + next;
}

template <int ahead>
__device__ void ring(const float4* from, float* out, int n) {
    __shared__ float4 space[(ahead + 1) * 32];
    const auto copy = [&](int i) {
        const unsigned to =
            unsigned(__cvta_generic_to_shared(&space[i % (ahead + 1) * 32 + int(threadIdx.x)]));
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to),
                     "l"(from + i * 32 + int(threadIdx.x))
                     : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    for (int i = 0; i < ahead; ++i) copy(i);
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; ++i) {
        copy(i + ahead);
        asm volatile("cp.async.wait_group %0;" ::"n"(ahead) : "memory");
        const float value = space[i % (ahead + 1) * 32 + int(threadIdx.x)].x;
        for (int j = 0; j < 60; ++j) sum = sum * value + 1;
    }
    out[threadIdx.x] = sum;
}
__global__ void ring_kernel(const float4* from, float* out, int n) {
    ring<3>(from, out, n);
}
__global__ void late_kernel(const float4* from, float* out, int n) {
    ring<0>(from, out, n);
}

__global__ void __launch_bounds__(1024, 2)
    spilling_kernel(const float* __restrict__ from, float* out, int n) {
    float values[64];
#pragma unroll
    for (int j = 0; j < 64; ++j) values[j] = from[j * 1024 + int(threadIdx.x)];
    for (int i = 0; i < n; ++i)
#pragma unroll
        for (int j = 0; j < 64; ++j) values[j] = values[j] * values[(j + 7) % 64] + from[i];
#pragma unroll
    for (int j = 0; j < 64; ++j) out[j * 1024 + int(threadIdx.x)] = values[j];
}
