// Stands in for the PTX instructions of backends/cuda: what they do, in C++. How a tensor core
// rounds its sums inside one instruction is not known; here it is one addition after the other.
#pragma once

#include <cuda_runtime.h>

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

template <int count>
void copy_async(SharedArray<uint4, count>& to, int index, const uint4* from) {
    to.spoil(index);
    simt::add_copy({&to, index, from, [](const simt::Copy& copy) {
                        (*static_cast<SharedArray<uint4, count>*>(copy.to))[copy.index] =
                            *static_cast<const uint4*>(copy.from);
                    }});
}
inline void commit_copies() {
    simt::commit_copies();
}
template <int pending>
void wait_for_copies() {
    simt::wait_for_copies(pending);
}

// What the lanes of a warp hold of c [16, 8] += a [16, K] * b [K, 8]; K is 32 bytes.
template <class Sum>
struct Fragments {
    Sum* c;  // [4]
    uint4 a;
    uint2 b;
};

// multiply(sum, word of a, word of b) adds the products of the elements in two words.
template <class Sum, class Multiply>
void multiply_tile(void* const* items, const Multiply& multiply) {
    const auto lane = [&](int g, int t) -> Fragments<Sum>& {
        return *static_cast<Fragments<Sum>*>(items[g * 4 + t]);
    };
    for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 8; ++column) {
            Sum& sum = lane(row % 8, column / 2).c[row / 8 * 2 + column % 2];
            for (int half = 0; half < 2; ++half)
                for (int t = 0; t < 4; ++t) {
                    const uint4& a = lane(row % 8, t).a;
                    const uint2& b = lane(column, t).b;
                    multiply(sum, half ? (row < 8 ? a.z : a.w) : (row < 8 ? a.x : a.y),
                             half ? b.y : b.x);
                }
        }
}

template <class Sum, class AllHere>
void meet_for_tile(Sum (&c)[4], uint4 a, uint2 b, AllHere all_here, simt::Site site) {
    Fragments<Sum> mine{c, a, b};
    simt::meet(mine, all_here, site);
}

inline void mma_s8(int (&c)[4], uint4 a, uint2 b, simt::Site site = simt::Site::current()) {
    meet_for_tile(
        c, a, b,
        [](void* const* items) {
            multiply_tile<int>(items, [](int& sum, unsigned x, unsigned y) {
                for (int i = 0; i < 32; i += 8) sum += int(int8_t(x >> i)) * int(int8_t(y >> i));
            });
        },
        site);
}

inline void mma_f16(float (&c)[4], uint4 a, uint2 b, simt::Site site = simt::Site::current()) {
    meet_for_tile(
        c, a, b,
        [](void* const* items) {
            multiply_tile<float>(items, [](float& sum, unsigned x, unsigned y) {
                for (int i = 0; i < 32; i += 16)
                    sum += f16_to_f32(uint16_t(x >> i)) * f16_to_f32(uint16_t(y >> i));
            });
        },
        site);
}

inline void mma_bf16(float (&c)[4], uint4 a, uint2 b, simt::Site site = simt::Site::current()) {
    meet_for_tile(
        c, a, b,
        [](void* const* items) {
            multiply_tile<float>(items, [](float& sum, unsigned x, unsigned y) {
                for (int i = 0; i < 32; i += 16)
                    sum += bf16_to_f32(uint16_t(x >> i)) * bf16_to_f32(uint16_t(y >> i));
            });
        },
        site);
}

}  // namespace aerie::cuda
