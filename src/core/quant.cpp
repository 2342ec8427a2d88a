// The scalar truth of the quantised types; backends repeat it with vectors, bit for bit.
#include "core/quant.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "core/arithmetic.h"

namespace aerie {

namespace {

constexpr float kMostF16 = 65504;

uint16_t f16_step(float step) {
    return f32_to_f16(std::clamp(step, -kMostF16, kMostF16));
}

// To the nearest of low .. high, ties to even; NaN becomes 0.
int nearest(float value, int low, int high) {
    if (!(value == value)) return 0;
    constexpr float kRound = 0x1.8p23f;  // leaves no bits behind the point
    return int((std::clamp(value, float(low), float(high)) + kRound) - kRound);
}

// The value that is largest without its sign.
float extreme(const float* values) {
    float best = 0;
    for (int i = 0; i < kGroup; ++i)
        if (std::fabs(values[i]) > std::fabs(best)) best = values[i];
    return best;
}

}  // namespace

BlockQ8_0 pack_q8_0(const float* values) {
    BlockQ8_0 block;
    block.scale = f16_step(std::fabs(extreme(values)) / 127);
    const float step = f16_to_f32(block.scale), inverse = step > 0 ? 1 / step : 0;
    for (int i = 0; i < kGroup; ++i) block.q[i] = int8_t(nearest(values[i] * inverse, -127, 127));
    return block;
}

BlockQ4_0 pack_q4_0(const float* values) {
    BlockQ4_0 block;
    block.scale = f16_step(extreme(values) / -8);  // the extreme is -8 steps: one more than +7
    const float step = f16_to_f32(block.scale), inverse = step != 0 ? 1 / step : 0;
    const auto nibble = [&](int i) { return nearest(values[i] * inverse, -8, 7) + 8; };
    for (int i = 0; i < kGroup / 2; ++i)
        block.q[i] = uint8_t(nibble(i) | nibble(i + kGroup / 2) << 4);
    return block;
}

BlockI8G32 pack_i8g32(const float* values) {
    // Smaller groups are zero: the inverse step must stay finite.
    constexpr float kLeast = 0x1p-100f;
    const float largest = std::fabs(extreme(values));
    bool sound = true;
    for (int i = 0; i < kGroup; ++i) sound = sound && std::isfinite(values[i]);
    const bool used = sound && largest >= kLeast;
    BlockI8G32 block;
    block.scale = used    ? largest * (1.0f / 127)
                  : sound ? 0
                          : std::numeric_limits<float>::quiet_NaN();
    const float inverse = used ? 127 * reciprocal(largest) : 0;
    for (int i = 0; i < kGroup; ++i)
        block.q[i] = int8_t(used ? nearest(values[i] * inverse, -127, 127) : 0);
    return block;
}

void unpack(float* values, const BlockQ8_0& block) {
    const float step = f16_to_f32(block.scale);
    for (int i = 0; i < kGroup; ++i) values[i] = step * float(block.q[i]);
}

void unpack(float* values, const BlockQ4_0& block) {
    const float step = f16_to_f32(block.scale);
    for (int i = 0; i < kGroup / 2; ++i) {
        values[i] = step * float((block.q[i] & 15) - 8);
        values[i + kGroup / 2] = step * float((block.q[i] >> 4) - 8);
    }
}

// A half of the block has 64 bytes of low bits and 32 of high ones. Byte i of the latter has those
// of its elements i, 32 + i, 64 + i and 96 + i; the low bits of the first two are bytes i and 32 +
// i, those of the others the same bytes' upper halves.
void unpack_steps(int8_t* q, const BlockQ6_K& block) {
    for (int half = 0; half < 2; ++half, q += 128) {
        const uint8_t* low = block.low + half * 64;
        const uint8_t* high = block.high + half * 32;
        for (int quarter = 0; quarter < 4; ++quarter)
            for (int i = 0; i < 32; ++i) {
                const int nibble = low[quarter % 2 * 32 + i] >> (quarter / 2 * 4) & 15;
                q[quarter * 32 + i] = int8_t((nibble | (high[i] >> (quarter * 2) & 3) << 4) - 32);
            }
    }
}

void unpack(float* values, const BlockQ6_K& block) {
    int8_t q[BlockQ6_K::kElements];
    unpack_steps(q, block);
    const float step = f16_to_f32(block.scale);
    for (int i = 0; i < BlockQ6_K::kElements; ++i)
        values[i] = step * float(block.scales[i / BlockQ6_K::kScaled]) * float(q[i]);
}

void unpack(float* values, const BlockI8G32& block) {
    for (int i = 0; i < kGroup; ++i) values[i] = block.scale * float(block.q[i]);
}

void unpack(float* values, const std::byte* blocks, DType type, int count) {
    const size_t units = size_t(count / unit_elements(type));
    switch (type) {
        case DType::Q8_0:
            return unpack_blocks<BlockQ8_0>(blocks, units, values);
        case DType::Q4_0:
            return unpack_blocks<BlockQ4_0>(blocks, units, values);
        case DType::Q6_K:
            return unpack_blocks<BlockQ6_K>(blocks, units, values);
        default:
            assert(type == DType::I8G32);
            unpack_blocks<BlockI8G32>(blocks, units, values);
    }
}

}  // namespace aerie
