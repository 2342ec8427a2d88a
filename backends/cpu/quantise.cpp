// Quantises f32 values, 32 at a time, to the bits of the scalar definitions in core/quant.cpp.
#include "core/quant.h"
#include "cpu/isa_kernels.h"
#include "cpu/vector_math.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

constexpr uint32_t kSign = 0x80000000u;

inline F32x16 magnitude(F32x16 x) {
    return as_float(as_u32(x) & splat_u32(~kSign));
}

// Lanes that are neither NaN nor infinite.
inline Mask16 sound_lanes(F32x16 x) {
    return magnitude(x) < splat(__builtin_inff());
}

inline F32x16 sound_or_zero(F32x16 x) {
    return select(sound_lanes(x), x, splat(0.0f));
}

inline F32x16 clamp(F32x16 x, float low, float high) {
    x = select(x < splat(low), splat(low), x);
    return select(splat(high) < x, splat(high), x);
}

// Added to a small number, this leaves the nearest integer in the low bits.
constexpr float kRound = 0x1.8p23f;

inline F32x16 rounded_bits(F32x16 x, float low, float high) {
    return clamp(x, low, high) + splat(kRound);
}

// Rounds to the nearest integer in low .. high; NaN lanes become 0.
inline void nearest(int32_t* steps, F32x16 x, float low, float high) {
    const F32x16 numbers = select(x <= x, x, splat(0.0f));
    float lanes[kLanes];
    store(lanes, rounded_bits(numbers, low, high));
    __builtin_memcpy(steps, lanes, sizeof(lanes));
    for (int i = 0; i < kLanes; ++i) steps[i] -= 0x4b400000;  // the bits of kRound
}

// The amax of a group. NaN lanes do not count: quantise() finds them by `poison`.
inline float largest_of(F32x16 a, F32x16 b) {
    return largest_lane(max(magnitude(a), max(magnitude(b), splat(0.0f))));
}

uint16_t f16_step(float step) {
    constexpr float kMost = 65504;
    Half half[kLanes];
    store(half, splat(step > kMost ? kMost : step < -kMost ? -kMost : step));
    return half[0].bits;
}

float from_f16(uint16_t bits) {
    const Half half[kLanes] = {{bits}};
    float lanes[kLanes];
    store(lanes, load(half));
    return lanes[0];
}

void pack(BlockQ8_0& block, const float* from) {
    const F32x16 a = load(from), b = load(from + kLanes);
    block.scale = f16_step(largest_of(a, b) / 127);
    const float step = from_f16(block.scale);
    const F32x16 inverse = splat(step > 0 ? 1 / step : 0);
    int32_t q[kGroup];
    nearest(q, a * inverse, -127, 127);
    nearest(q + kLanes, b * inverse, -127, 127);
    for (int i = 0; i < kGroup; ++i) block.q[i] = int8_t(q[i]);
}

void pack(BlockQ4_0& block, const float* from) {
    const F32x16 a = load(from), b = load(from + kLanes);
    const float largest = largest_of(a, b);
    float extreme = 0;  // the first value of that magnitude, with its sign
    for (int i = kGroup; i-- > 0;)
        if (from[i] == largest || from[i] == -largest) extreme = from[i];
    block.scale = f16_step(extreme / -8);
    const float step = from_f16(block.scale);
    const F32x16 inverse = splat(step != 0 ? 1 / step : 0);
    int32_t q[kGroup];
    nearest(q, a * inverse, -8, 7);
    nearest(q + kLanes, b * inverse, -8, 7);
    for (int i = 0; i < kGroup / 2; ++i)
        block.q[i] = uint8_t((q[i] + 8) | (q[i + kGroup / 2] + 8) << 4);
}

template <class Block>
void pack_groups(void* to, const float* from, int count) {
    Block* block = static_cast<Block*>(to);
    for (int i = 0; i < count; i += kGroup, ++block) pack(*block, from + i);
}

}  // namespace

void pack_weights(void* to, DType type, const float* from, int count) {
    type == DType::Q8_0 ? pack_groups<BlockQ8_0>(to, from, count)
                        : pack_groups<BlockQ4_0>(to, from, count);
}

void quantise(void* to, const float* from, int count) {
    constexpr float kLeast = 0x1p-100f;
    static_assert(kScaled == kLanes);
    BlockI8G32* block = static_cast<BlockI8G32*>(to);
    for (int i = 0; i < count; i += kGroup, ++block) {
        const F32x16 a = load(from + i), b = load(from + i + kLanes), zero = splat(0.0f);
        const float poison = sum(a * zero + b * zero), largest = largest_of(a, b);
        const bool sound = poison == poison, used = sound && largest >= kLeast;
        block->scale = used ? largest * (1.0f / 127) : sound ? 0.0f : __builtin_nanf("");
        const F32x16 inverse = used ? splat(127.0f) * reciprocal(splat(largest)) : splat(0.0f);
        for (int half = 0; half < 2; ++half) {
            const F32x16 steps = sound_or_zero(half ? b : a) * inverse;
            const F32x16 rounded = rounded_bits(steps, -127, 127);
            store_low_bytes(block->q + half * kScaled, as_u32(rounded));
            block->sums[half] = int16_t(sum(rounded - splat(kRound)));  // exact
        }
    }
}

}  // namespace aerie::cpu::AERIE_ISA
