// How a lane of a matmul reads a block of quantised weights: quantised values as the matrix
// instruction takes them, and scales. See QuantLayout.
#pragma once

#include <string>

#include "core/error.h"
#include "cuda/device/packed.cuh"
#include "cuda/device/ptx.cuh"

namespace aerie::cuda {

__device__ inline unsigned component(const uint4& word, int i) {
    return i == 0 ? word.x : i == 1 ? word.y : i == 2 ? word.z : word.w;
}
// Shifts bits from one place to another; the caller masks what comes along.
__device__ inline unsigned moved(unsigned word, int from, int to) {
    return from < to ? word << (to - from) : word >> (from - to);
}
__device__ inline float2 both_f16(unsigned pair) {
    return make_float2(from_f16(uint16_t(pair)), from_f16(uint16_t(pair >> 16)));
}

// Small integers become floats by an addition, not by a slower conversion: kZeroBits are the bits
// of 1.5 * 2^23 / 2^shift, and exact(kZeroBits + n) is n / 2^shift, for n below 2^22 with either
// sign.
template <int shift = 0>
constexpr int kZeroBits = 0x4b400000 - (shift << 23);
template <int shift = 0>
__device__ inline float exact(int bits) {
    return __uint_as_float(unsigned(bits)) - 12582912.0f / (1 << shift);
}
// Byte i of `bytes` as a float, over 2^shift.
template <int shift>
__device__ inline float exact_byte(unsigned bytes, int i) {
    constexpr unsigned kAbove = 0x4b000000u - (shift << 23);  // high bits of 2^23 / 2^shift
    const unsigned bits = __byte_perm(bytes, kAbove, 0x7640 | unsigned(i));
    return __uint_as_float(bits) - 8388608.0f / (1 << shift);
}

// The 6-bit scales and mins of a row of Q4_K or Q5_K, a byte each, of groups 0 .. 3 or, `second`,
// of groups 4 .. 7.
struct SixBits {
    unsigned scales, leasts;

    __device__ SixBits(const uint4& row, bool second)
        : scales(row.y & 0x3f3f3f3fu), leasts(row.z & 0x3f3f3f3fu) {
        if (!second) return;
        scales = (row.w & 0x0f0f0f0fu) | (row.y >> 2 & 0x30303030u);
        leasts = (row.w >> 4 & 0x0f0f0f0fu) | (row.z >> 2 & 0x30303030u);
    }
};

// Scales and mins of a group, for rows g (x) and g + 8 (y). Not all types have all of them: see
// QuantLayout.
struct GroupScales {
    float2 scale, least;
    float2 whole[2], whole_least;  // integer scales of both halves, or whole[0] for both
};

// Decodes a K step of a tile, which is four groups, for a lane. `second`: these are the last four
// of a block of eight. word(i) is the i-th word of 16 bytes: first the quantised values of the
// step, then the scales of the block.
template <DType type>
struct QuantFormat {
    static constexpr DType kType = type;
    static constexpr QuantLayout kLayout = layout_of(type);
    static constexpr int kStepWords = kLayout.step_bytes() / 16;
    static constexpr int kWords = kStepWords + kLayout.scale_bytes() / 16;
    // Quantised values are unpacked with this shift: the sign of fewer than 8 bits becomes that of
    // a byte.
    static constexpr int kShift = kLayout.has_least() ? 0 : 8 - kLayout.bits();

    template <class Word>
    __device__ static uint4 steps(const Word& word, int group) {
        const int lane = int(threadIdx.x) % 32;
        if constexpr (kLayout.low_bits == 8) {
            return word(group * 32 + lane);
        } else {
            constexpr unsigned kLow = 0x01010101u * (0xfu << kShift & 0xffu);
            const uint4 pair = word(group / 2 * 32 + lane);
            const unsigned a = group % 2 ? pair.z : pair.x, b = group % 2 ? pair.w : pair.y;
            uint4 steps = make_uint4(a << kShift & kLow, moved(a, 4, kShift) & kLow,
                                     b << kShift & kLow, moved(b, 4, kShift) & kLow);
            if constexpr (kLayout.high_bits > 0) {
                const uint4 high = word(kLayout.high_at() / 16 + lane * kLayout.high_bytes() / 16);
                steps.x |= high_bits(high, group, 0);
                steps.y |= high_bits(high, group, 1);
                steps.z |= high_bits(high, group, 2);
                steps.w |= high_bits(high, group, 3);
            }
            return steps;
        }
    }

    template <class Word>
    __device__ static GroupScales scales(const Word& word, int group, bool second) {
        const int row = int(threadIdx.x) % 32 / 4;
        GroupScales scales;
        const uint4 first = word(kStepWords + row);
        if constexpr (kLayout.scales == Scales::of_groups) {
            scales.scale = both_f16(component(first, group));
        } else if constexpr (kLayout.scales == Scales::leasts_of_groups) {
            scales.scale = both_f16(component(first, group));
            scales.least = both_f16(component(word(kStepWords + 8 + row), group));
        } else if constexpr (kLayout.scales == Scales::six_bits) {
            const uint4 other = word(kStepWords + 8 + row);
            const float2 low = both_f16(first.x), high = both_f16(other.x);
            const SixBits low_whole(first, second), high_whole(other, second);
            scales.scale = make_float2(low.x, high.x);
            scales.least = make_float2(low.y, high.y);
            scales.whole[0] = make_float2(exact_byte<0>(low_whole.scales, group),
                                          exact_byte<0>(high_whole.scales, group));
            scales.whole_least = make_float2(exact_byte<0>(low_whole.leasts, group),
                                             exact_byte<0>(high_whole.leasts, group));
        } else {
            const uint4 other = word(kStepWords + 8 + row);
            scales.scale = both_f16(component(word(kStepWords + 16 + row / 4), row % 4));
            const int pair = second * 2 + group / 2;
            for (int half = 0; half < 2; ++half)
                scales.whole[half] =
                    make_float2(signed_byte(component(first, pair), group % 2 * 2 + half),
                                signed_byte(component(other, pair), group % 2 * 2 + half));
        }
        return scales;
    }

  private:
    // The high bits of one of the four words of a group, at their place above the low bits.
    __device__ static unsigned high_bits(const uint4& all, int group, int word) {
        constexpr int kBits = kLayout.high_bits, kPlaces = 8 / kBits, kTo = 4 + kShift;
        constexpr unsigned kMask = 0x01010101u * (((1u << kBits) - 1) << kTo);
        const int place = group * 4 + word, part = place / kPlaces;
        // Two lanes share 16 bytes.
        const bool is_odd = kLayout.high_bytes() < 16 && threadIdx.x % 2 > 0;
        const unsigned bits = component(all, is_odd ? part + 2 : part);
        return moved(bits, place % kPlaces * kBits, kTo) & kMask;
    }
    // Byte i as a signed number, over the power of two that quantised values are unpacked with.
    __device__ static float signed_byte(unsigned bytes, int i) {
        return exact_byte<kShift>(bytes ^ 0x80808080u, i) - 128.0f / (1 << kShift);
    }
};

struct Q8_0 : QuantFormat<DType::Q8_0> {
    static constexpr const char *kMatmul = "matmul_q8_0", *kGated = "matmul_swiglu_q8_0",
                                *kExperts = "expert_matmul_q8_0";
};
struct Q4_0 : QuantFormat<DType::Q4_0> {
    static constexpr const char *kMatmul = "matmul_q4_0", *kGated = "matmul_swiglu_q4_0",
                                *kExperts = "expert_matmul_q4_0";
};
struct Q5_0 : QuantFormat<DType::Q5_0> {
    static constexpr const char *kMatmul = "matmul_q5_0", *kGated = "matmul_swiglu_q5_0",
                                *kExperts = "expert_matmul_q5_0";
};
struct Q5_1 : QuantFormat<DType::Q5_1> {
    static constexpr const char *kMatmul = "matmul_q5_1", *kGated = "matmul_swiglu_q5_1",
                                *kExperts = "expert_matmul_q5_1";
};
struct Q4_K : QuantFormat<DType::Q4_K> {
    static constexpr const char *kMatmul = "matmul_q4_k", *kGated = "matmul_swiglu_q4_k",
                                *kExperts = "expert_matmul_q4_k";
};
struct Q5_K : QuantFormat<DType::Q5_K> {
    static constexpr const char *kMatmul = "matmul_q5_k", *kGated = "matmul_swiglu_q5_k",
                                *kExperts = "expert_matmul_q5_k";
};
struct Q6_K : QuantFormat<DType::Q6_K> {
    static constexpr const char *kMatmul = "matmul_q6_k", *kGated = "matmul_swiglu_q6_k",
                                *kExperts = "expert_matmul_q6_k";
};

// Calls body(format) with the QuantFormat of a quantised type that the backend stores. Throws Error
// for other types.
template <class Body>
auto with_format(DType type, const Body& body) {
    switch (type) {
        case DType::Q8_0:
            return body(Q8_0());
        case DType::Q4_0:
            return body(Q4_0());
        case DType::Q5_0:
            return body(Q5_0());
        case DType::Q5_1:
            return body(Q5_1());
        case DType::Q4_K:
            return body(Q4_K());
        case DType::Q5_K:
            return body(Q5_K());
        case DType::Q6_K:
            return body(Q6_K());
        default:
            throw Error(std::string("CUDA has no kernels for weights in ") + name(type) +
                        "; load them as q8_0");
    }
}

}  // namespace aerie::cuda
