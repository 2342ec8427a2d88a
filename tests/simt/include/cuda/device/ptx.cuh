// Stands in for the PTX instructions of backends/cuda: the same functions in C++. How a tensor core
// rounds its sums inside one instruction is not known; here it is one addition after the other.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

#include "core/dtype.h"
#include "cuda/device/shared.cuh"
#include "simt/copies.h"

namespace aerie::cuda {

inline float from_f16(uint16_t bits) {
    return f16_to_f32(bits);
}
inline uint16_t to_f16(float value) {
    return f32_to_f16(value);
}

inline int least_of_warp(int value, simt::Site site = simt::Site::current()) {
    const auto all_here = [](void* const* items) {
        int least = *static_cast<const int*>(items[0]);
        for (int lane = 1; lane < simt::kWarp; ++lane)
            least = std::min(least, *static_cast<const int*>(items[lane]));
        for (int lane = 0; lane < simt::kWarp; ++lane) *static_cast<int*>(items[lane]) = least;
    };
    simt::meet(value, all_here, site);
    return value;
}

inline unsigned largest_of_warp(unsigned value, simt::Site site = simt::Site::current()) {
    const auto all_here = [](void* const* items) {
        unsigned largest = 0;
        for (int lane = 0; lane < simt::kWarp; ++lane)
            largest = std::max(largest, *static_cast<const unsigned*>(items[lane]));
        for (int lane = 0; lane < simt::kWarp; ++lane)
            *static_cast<unsigned*>(items[lane]) = largest;
    };
    simt::meet(value, all_here, site);
    return value;
}

inline void wait_for_producers(simt::Site site = simt::Site::current()) {
    simt::wait_for_producers(site);
}
inline void let_dependents_start() {}
inline void begin_beside(simt::Site site = simt::Site::current()) {
    simt::wait_for_producers(site);
}

template <class T, int count, class Piece>
void copy_async(SharedArray<T, count>& to, int index, const Piece* from) {
    constexpr int kElements = sizeof(Piece) / sizeof(T);
    simt::check_alignment(from, sizeof(Piece));
    if (index % kElements != 0) simt::fault("a copy to where its size does not divide");
    for (int i = 0; i < kElements; ++i) to.spoil(index + i);
    simt::add_copy({&to, index, from, [](const simt::Copy& copy) {
                        for (int i = 0; i < kElements; ++i)
                            (*static_cast<SharedArray<T, count>*>(copy.to))[copy.index + i] =
                                static_cast<const T*>(copy.from)[i];
                    }});
}
template <int count>
void stream_async(SharedArray<uint4, count>& to, int index, const uint4* from) {
    copy_async(to, index, from);
}
inline void commit_copies() {
    simt::commit_copies();
}
template <int pending>
void wait_for_copies() {
    simt::wait_for_copies(pending);
}

template <bool turned, int count>
uint4 take_matrices(SharedArray<uint4, count>& from, int index,
                    simt::Site site = simt::Site::current()) {
    const auto all_here = [](void* const* items) {
        uint16_t elements[4][8][8];
        for (int lane = 0; lane < simt::kWarp; ++lane)
            std::memcpy(elements[lane / 8][lane % 8], items[lane], sizeof(uint4));
        for (int lane = 0; lane < simt::kWarp; ++lane) {
            uint16_t own[4][2];
            for (int m = 0; m < 4; ++m)
                for (int i = 0; i < 2; ++i) {
                    const int g = lane / 4, other = lane % 4 * 2 + i;
                    own[m][i] = turned ? elements[m][other][g] : elements[m][g][other];
                }
            std::memcpy(items[lane], own, sizeof(uint4));
        }
    };
    uint4 its = from[index];
    simt::meet(its, all_here, site);
    return its;
}

// The parts that a lane holds of c [16, 8] += a [16, K] * b [K, 8]; K is 32 bytes.
template <class Sum>
struct Fragments {
    Sum* c;  // [4]
    uint4 a;
    uint2 b;
};

// decode(out, word) stores the `count` elements of a word.
template <class Sum, int count, class Decode>
void multiply_tile(void* const* items, const Decode& decode) {
    constexpr int kInner = 8 * count;
    const auto lane = [&](int g, int t) -> Fragments<Sum>& {
        return *static_cast<Fragments<Sum>*>(items[g * 4 + t]);
    };
    Sum a[16][kInner], b[kInner][8];
    for (int g = 0; g < 8; ++g)
        for (int t = 0; t < 4; ++t) {
            const Fragments<Sum>& mine = lane(g, t);
            decode(&a[g][t * count], mine.a.x);
            decode(&a[g + 8][t * count], mine.a.y);
            decode(&a[g][(t + 4) * count], mine.a.z);
            decode(&a[g + 8][(t + 4) * count], mine.a.w);
            Sum column[2][count];
            decode(column[0], mine.b.x);
            decode(column[1], mine.b.y);
            for (int half = 0; half < 2; ++half)
                for (int i = 0; i < count; ++i) b[(t + 4 * half) * count + i][g] = column[half][i];
        }
    for (int row = 0; row < 16; ++row) {
        Sum sums[8];
        for (int n = 0; n < 8; ++n) sums[n] = lane(row % 8, n / 2).c[row / 8 * 2 + n % 2];
        for (int k = 0; k < kInner; ++k)
            for (int n = 0; n < 8; ++n) sums[n] += a[row][k] * b[k][n];
        for (int n = 0; n < 8; ++n) lane(row % 8, n / 2).c[row / 8 * 2 + n % 2] = sums[n];
    }
}

template <class Sum, class AllHere>
void meet_for_tile(Sum (&c)[4], uint4 a, uint2 b, AllHere all_here, simt::Site site) {
    Fragments<Sum> mine{c, a, b};
    simt::meet(mine, all_here, site);
}

inline void mma_s8(int (&c)[4], uint4 a, uint2 b, simt::Site site = simt::Site::current()) {
    const auto all_here = [](void* const* items) {
        multiply_tile<int, 4>(items, [](int* out, unsigned word) {
            for (int i = 0; i < 4; ++i) out[i] = int8_t(word >> (8 * i));
        });
    };
    meet_for_tile(c, a, b, all_here, site);
}

inline void mma_s8_half(int (&c)[4], unsigned a_low, unsigned a_high, unsigned b,
                        simt::Site site = simt::Site::current()) {
    mma_s8(c, {a_low, a_high, 0, 0}, {b, 0}, site);
}

inline void mma_f16(float (&c)[4], uint4 a, uint2 b, simt::Site site = simt::Site::current()) {
    const auto all_here = [](void* const* items) {
        multiply_tile<float, 2>(items, [](float* out, unsigned word) {
            out[0] = f16_to_f32(uint16_t(word));
            out[1] = f16_to_f32(uint16_t(word >> 16));
        });
    };
    meet_for_tile(c, a, b, all_here, site);
}

inline void mma_bf16(float (&c)[4], uint4 a, uint2 b, simt::Site site = simt::Site::current()) {
    const auto all_here = [](void* const* items) {
        multiply_tile<float, 2>(items, [](float* out, unsigned word) {
            out[0] = bf16_to_f32(uint16_t(word));
            out[1] = bf16_to_f32(uint16_t(word >> 16));
        });
    };
    meet_for_tile(c, a, b, all_here, site);
}

}  // namespace aerie::cuda
