// What a lane of a matmul finds of a block of quantised weights: steps as the matrix instruction
// takes them, and scales. See QuantLayout.
#pragma once

#include <cassert>

#include "cuda/device/packed.cuh"
#include "cuda/device/ptx.cuh"

namespace aerie::cuda {

__device__ inline unsigned component(const uint4& word, int i) {
    return i == 0 ? word.x : i == 1 ? word.y : i == 2 ? word.z : word.w;
}
// Bits from one place to another; what comes along is to be masked.
__device__ inline unsigned moved(unsigned word, int from, int to) {
    return from < to ? word << (to - from) : word >> (from - to);
}
__device__ inline float2 both_f16(unsigned pair) {
    return make_float2(from_f16(uint16_t(pair)), from_f16(uint16_t(pair >> 16)));
}

// Whole numbers that are small become floats by an addition: they are the last bits of a large one.
// Over 2^shift: what is added to the bits of 1.5 * 2^23 over it, below 2^22 with either sign.
template <int shift = 0>
constexpr int kZeroBits = 0x4b400000 - (shift << 23);
template <int shift = 0>
__device__ inline float exact(int bits) {
    return __uint_as_float(unsigned(bits)) - 12582912.0f / (1 << shift);
}
// A byte over 2^shift.
template <int shift>
__device__ inline float exact_byte(unsigned bytes, int i) {
    constexpr unsigned kAbove = 0x4b000000u - (shift << 23);  // of 2^23 over 2^shift
    const unsigned bits = __byte_perm(bytes, kAbove, 0x7640 | unsigned(i));
    return __uint_as_float(bits) - 8388608.0f / (1 << shift);
}

// The whole scales and least values of a row of Q4_K or Q5_K, bytes, of groups 0 .. 3 or 4 .. 7.
struct SixBits {
    unsigned scales, leasts;

    __device__ SixBits(const uint4& row, bool second)
        : scales(row.y & 0x3f3f3f3fu), leasts(row.z & 0x3f3f3f3fu) {
        if (!second) return;
        scales = (row.w & 0x0f0f0f0fu) | (row.y >> 2 & 0x30303030u);
        leasts = (row.w >> 4 & 0x0f0f0f0fu) | (row.z >> 2 & 0x30303030u);
    }
};

// Of a group of rows g (x) and g + 8 (y). Not all types have all of it: see QuantLayout.
struct GroupScales {
    float2 scale, least;
    float2 whole[2], whole_least;  // those of both halves are whole[0] where they are the same
};

// Words are a lane's: words[i] is the one that lies at word_at(i).
template <DType type>
struct QuantFormat {
    static constexpr DType kType = type;
    static constexpr QuantLayout kLayout = layout_of(type);
    // Steps are unpacked as so many times two: the sign of fewer than 8 bits is that of a byte.
    static constexpr int kShift = kLayout.has_least() ? 0 : 8 - kLayout.bits();

    template <class Words>
    __device__ static uint4 steps(const Words& words, int group) {
        if constexpr (kLayout.low_bits == 8) {
            return words[group];
        } else {
            constexpr unsigned kLow = 0x01010101u * (0xfu << kShift & 0xffu);
            const uint4 pair = words[group / 2];
            const unsigned a = group % 2 ? pair.z : pair.x, b = group % 2 ? pair.w : pair.y;
            uint4 steps = make_uint4(a << kShift & kLow, moved(a, 4, kShift) & kLow,
                                     b << kShift & kLow, moved(b, 4, kShift) & kLow);
            if constexpr (kLayout.high_bits > 0) {
                steps.x |= high_bits(words, group, 0);
                steps.y |= high_bits(words, group, 1);
                steps.z |= high_bits(words, group, 2);
                steps.w |= high_bits(words, group, 3);
            }
            return steps;
        }
    }

    template <class Words>
    __device__ static GroupScales scales(const Words& words, int group) {
        constexpr int kFirst = kLayout.scale_word();
        GroupScales scales;
        const uint4 first = words[kFirst];
        if constexpr (kLayout.scales == Scales::of_groups) {
            scales.scale = both_f16(component(first, group));
        } else if constexpr (kLayout.scales == Scales::leasts_of_groups) {
            scales.scale = both_f16(component(first, group));
            scales.least = both_f16(component(words[kFirst + 1], group));
        } else if constexpr (kLayout.scales == Scales::six_bits) {
            const uint4 second = words[kFirst + 1];
            const float2 low = both_f16(first.x), high = both_f16(second.x);
            const SixBits low_whole(first, group >= 4), high_whole(second, group >= 4);
            scales.scale = make_float2(low.x, high.x);
            scales.least = make_float2(low.y, high.y);
            scales.whole[0] = make_float2(exact_byte<0>(low_whole.scales, group % 4),
                                          exact_byte<0>(high_whole.scales, group % 4));
            scales.whole_least = make_float2(exact_byte<0>(low_whole.leasts, group % 4),
                                             exact_byte<0>(high_whole.leasts, group % 4));
        } else {
            const uint4 second = words[kFirst + 1];
            scales.scale = both_f16(component(words[kFirst + 2], int(threadIdx.x) % 32 / 4 % 4));
            for (int half = 0; half < 2; ++half)
                scales.whole[half] =
                    make_float2(signed_byte(component(first, group / 2), group % 2 * 2 + half),
                                signed_byte(component(second, group / 2), group % 2 * 2 + half));
        }
        return scales;
    }

  private:
    // Those of one of the four words of a group, above its low ones.
    template <class Words>
    __device__ static unsigned high_bits(const Words& words, int group, int word) {
        constexpr int kBits = kLayout.high_bits, kPlaces = 8 / kBits, kTo = 4 + kShift;
        constexpr unsigned kMask = 0x01010101u * (((1u << kBits) - 1) << kTo);
        const int place = group * 4 + word, part = place / kPlaces;
        const uint4 all = words[kLayout.code_words() + part / 4];
        const bool is_odd = kLayout.high_bytes() < 16 && threadIdx.x % 2 > 0;  // of two lanes
        const unsigned bits = component(all, is_odd ? part + 2 : part % 4);
        return moved(bits, place % kPlaces * kBits, kTo) & kMask;
    }
    // Over the power of two that steps are unpacked with.
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

// body(format) of a quantised type that is stored.
template <class Body>
auto with_format(DType type, const Body& body) {
    assert(layout_of(type).groups > 0);
    switch (type) {
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
            return body(Q8_0());
    }
}

}  // namespace aerie::cuda
