// Functions for the PTX instructions that CUDA's C++ does not have. tests/simt has the same
// functions in plain C++.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

#include "cuda/device/shared.cuh"

namespace aerie::cuda {

// Round to nearest, ties to even; denormals are kept.
__device__ inline float from_f16(uint16_t bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
__device__ inline uint16_t to_f16(float value) {
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

// The minimum over all lanes of a warp.
__device__ inline int least_of_warp(int value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(~0u, value);
#else
    for (int distance = 16; distance > 0; distance /= 2)
        value = min(value, __shfl_xor_sync(~0u, value, distance));
    return value;
#endif
}

__device__ inline unsigned largest_of_warp(unsigned value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(~0u, value);
#else
    for (int distance = 16; distance > 0; distance /= 2)
        value = max(value, __shfl_xor_sync(~0u, value, distance));
    return value;
#endif
}

// Programmatic dependent launch: a kernel that is started by launch_beside begins while the kernel
// before it on the stream still runs. Until it has waited here it may read only what no kernel
// writes, and it stores nothing. All threads of a block call this; in a kernel that was launched
// normally it takes no time.
__device__ inline void wait_for_producers() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Once all blocks have called this, the next kernel may begin.
__device__ inline void let_dependents_start() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// The beginning of a kernel that has nothing to do before it waits.
__device__ inline void begin_beside() {
    let_dependents_start();
    wait_for_producers();
}

// Starts a copy of 8 or 16 bytes to shared memory (cp.async), to the elements from `index` on. They
// are there, for this thread, once it has waited for the group in which they were committed.
template <class T, int count, class Piece>
__device__ inline void copy_async(SharedArray<T, count>& to, int index, const Piece* from) {
#if __CUDA_ARCH__ >= 800
    const unsigned address = unsigned(__cvta_generic_to_shared(&to[index]));
    if constexpr (sizeof(Piece) == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from),
                     "n"(sizeof(Piece))
                     : "memory");
#else
    reinterpret_cast<Piece&>(to[index]) = *from;
#endif
}
// The same for data that is read only once: the L2 cache evicts it first.
template <int count>
__device__ inline void stream_async(SharedArray<uint4, count>& to, int index, const uint4* from) {
#if __CUDA_ARCH__ >= 800
    const unsigned address = unsigned(__cvta_generic_to_shared(&to[index]));
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(address),
                 "l"(from), "l"(policy)
                 : "memory");
#else
    copy_async(to, index, from);
#endif
}
__device__ inline void commit_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int pending>  // groups that may still be under way
__device__ inline void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

// Loads four 8 x 8 matrices of 2-byte elements (ldmatrix): lane l addresses row l % 8 of matrix l /
// 8, which is 16 bytes. With g = lane / 4 and t = lane % 4 a lane gets elements 2 t and 2 t + 1 of
// row g of each matrix or, `turned`, of column g.
template <bool turned, int count>
__device__ inline uint4 take_matrices(SharedArray<uint4, count>& from, int index) {
    const unsigned address = unsigned(__cvta_generic_to_shared(&from[index]));
    uint4 words;
    if constexpr (turned)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                     : "r"(address)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                     : "r"(address)
                     : "memory");
    return words;
}

// Matrix instructions compute c [16, 8] += a [16, K] * b [K, 8] by a whole warp, where K is 32
// bytes. With g = lane / 4 and t = lane % 4, a lane holds words t of rows g and g + 8 of a, then
// words t + 4 of both; words t and t + 4 of column g of b; columns 2 t and 2 t + 1 of row g of c,
// then of row g + 8.
//
// mma_s8_half takes one half of K, which is 16 bytes: words t, or words t + 4.
__device__ inline void mma_s8_half(int (&c)[4], unsigned a_low, unsigned a_high, unsigned b) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a_low), "r"(a_high), "r"(b));
#else
    const auto quarter = [&](int& c0, int& c1, unsigned a_word) {
        asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
            : "+r"(c0), "+r"(c1)
            : "r"(a_word), "r"(b));
    };
    quarter(c[0], c[1], a_low);
    quarter(c[2], c[3], a_high);
#endif
}

__device__ inline void mma_s8(int (&c)[4], uint4 a, uint2 b) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
#else
    mma_s8_half(c, a.x, a.y, b.x);
    mma_s8_half(c, a.z, a.w, b.y);
#endif
}

__device__ inline void mma_f16(float (&c)[4], uint4 a, uint2 b) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
#else
    const auto half = [&](unsigned a_low, unsigned a_high, unsigned b_word) {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
            "{%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a_low), "r"(a_high), "r"(b_word));
    };
    half(a.x, a.y, b.x);
    half(a.z, a.w, b.y);
#endif
}

__device__ inline void mma_bf16(float (&c)[4], uint4 a, uint2 b) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
#else
    // There is no tensor core for bf16: words are exchanged by shuffles, and every lane sums its
    // own four elements.
    const int lane = int(threadIdx.x) % 32;
    const auto add = [&](float& sum, unsigned x, unsigned y) {
        sum = __fmaf_rn(__uint_as_float(x << 16), __uint_as_float(y << 16), sum);
        sum = __fmaf_rn(__uint_as_float(x & 0xffff0000u), __uint_as_float(y & 0xffff0000u), sum);
    };
#pragma unroll 1  // unrolled, the words of many tiles would take registers
    for (int half = 0; half < 2; ++half)
        for (int t = 0; t < 4; ++t) {
            const unsigned low = __shfl_sync(~0u, half ? a.z : a.x, lane / 4 * 4 + t);
            const unsigned high = __shfl_sync(~0u, half ? a.w : a.y, lane / 4 * 4 + t);
            for (int i = 0; i < 2; ++i) {
                const unsigned b_word =
                    __shfl_sync(~0u, half ? b.y : b.x, (lane % 4 * 2 + i) * 4 + t);
                add(c[i], low, b_word);
                add(c[2 + i], high, b_word);
            }
        }
#endif
}

}  // namespace aerie::cuda
