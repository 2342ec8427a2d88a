// f32 activations to int8 with a scale for each 32: the bits of pack_i8g32 (core/quant.cpp).
#include "core/quant.h"
#include "cpu/isa_kernels.h"
#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

constexpr uint32_t kSign = 0x80000000u;

inline F32x16 magnitude(F32x16 x) {
    return as_float(as_u32(x) & splat_u32(~kSign));
}

// Neither NaN nor infinite.
inline Mask16 sound_lanes(F32x16 x) {
    return magnitude(x) < splat(__builtin_inff());
}

// The largest lane. A NaN is never larger; `poison` tells of it.
inline float largest_lane(F32x16 x) {
    float lanes[kLanes], best = 0;
    store(lanes, x);
    for (float lane : lanes) best = lane > best ? lane : best;
    return best;
}

}  // namespace

void quantise(void* to, const float* from, int count) {
    constexpr float kLeast = 0x1p-100f;
    BlockI8G32* block = static_cast<BlockI8G32*>(to);
    for (int i = 0; i < count; i += kGroup, ++block) {
        const F32x16 a = load(from + i), b = load(from + i + kLanes), zero = splat(0.0f);
        const float poison = sum(a * zero + b * zero);
        const float largest = largest_lane(max(magnitude(a), max(magnitude(b), zero)));
        const bool sound = poison == poison, used = sound && largest >= kLeast;
        block->scale = used ? largest * (1.0f / 127) : sound ? 0.0f : __builtin_nanf("");
        const F32x16 inverse = splat(used ? 127 / largest : 0.0f);
        // Added to a small number it leaves the nearest integer in the low bits.
        const F32x16 round = splat(0x1.8p23f);
        float lanes[kGroup];
        store(lanes, select(sound_lanes(a), a, zero) * inverse + round);
        store(lanes + kLanes, select(sound_lanes(b), b, zero) * inverse + round);
        uint32_t words[kGroup];
        __builtin_memcpy(words, lanes, sizeof(words));
        for (int j = 0; j < kGroup; ++j) block->q[j] = int8_t(words[j]);
    }
}

}  // namespace aerie::cpu::AERIE_ISA
