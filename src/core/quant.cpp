// The scalar definition of the quantised types; backends repeat it with vectors, bit for bit.
#include "core/quant.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/arithmetic.h"

namespace aerie {

namespace {

constexpr float kMaxF16 = 65504;

uint16_t f16_step(float step) {
    return f32_to_f16(std::clamp(step, -kMaxF16, kMaxF16));
}

// Rounds to the nearest integer in low .. high, ties to even; NaN becomes 0.
int nearest(float value, int low, int high) {
    if (!(value == value)) return 0;
    constexpr float kRound = 0x1.8p23f;  // an addition that rounds away all bits after the point
    return int((std::clamp(value, float(low), float(high)) + kRound) - kRound);
}

// The value with the largest magnitude.
float extreme(const float* values) {
    float best = 0;
    for (int i = 0; i < kGroup; ++i)
        if (std::fabs(values[i]) > std::fabs(best)) best = values[i];
    return best;
}

// Element i of an array of T at any alignment.
template <class T>
T element(const std::byte* from, size_t i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    return value;
}

void unpack_activations(float* values, const std::byte* blocks, size_t count) {
    for (size_t first = 0; first < count; first += kGroup) {
        const BlockI8G32 block = element<BlockI8G32>(blocks, first / kGroup);
        for (int i = 0; i < kGroup; ++i)
            values[first + size_t(i)] = block.scale * float(block.q[i]);
    }
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
    block.scale = f16_step(extreme(values) / -8);  // the extreme is -8, which is one more than +7
    const float step = f16_to_f32(block.scale), inverse = step != 0 ? 1 / step : 0;
    const auto nibble = [&](int i) { return nearest(values[i] * inverse, -8, 7) + 8; };
    for (int i = 0; i < kGroup / 2; ++i)
        block.q[i] = uint8_t(nibble(i) | nibble(i + kGroup / 2) << 4);
    return block;
}

BlockI8G32 pack_i8g32(const float* values) {
    // Smaller groups become zero, because the inverse scale must be finite.
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
    block.sums[0] = block.sums[1] = 0;
    for (int i = 0; i < kGroup; ++i) {
        block.q[i] = int8_t(used ? nearest(values[i] * inverse, -127, 127) : 0);
        block.sums[i / kScaled] = int16_t(block.sums[i / kScaled] + block.q[i]);
    }
    return block;
}

void unpack(float* values, const BlockParts& parts, int elements) {
    const float scale = f16_to_f32(parts.scale), least = f16_to_f32(parts.least);
    for (int first = 0; first < elements; first += kScaled) {
        const float step = scale * float(parts.scales[first / kScaled]);
        const float less = least * float(parts.leasts[first / kScaled]);
        for (int i = first; i < first + kScaled; ++i) values[i] = step * float(parts.q[i]) - less;
    }
}

void unpack(float* values, const std::byte* from, DType type, size_t count) {
    switch (type) {
        case DType::F32:
            std::memcpy(values, from, count * sizeof(float));
            return;
        case DType::F16:
            for (size_t i = 0; i < count; ++i) values[i] = f16_to_f32(element<uint16_t>(from, i));
            return;
        case DType::BF16:
            for (size_t i = 0; i < count; ++i) values[i] = bf16_to_f32(element<uint16_t>(from, i));
            return;
        case DType::I8G32:
            return unpack_activations(values, from, count);
        default:
            assert(is_quantised(type));
            const size_t elements = size_t(unit_elements(type));
            for (size_t first = 0; first < count; first += elements, from += unit_bytes(type))
                unpack(values + first, take_apart(type, from), int(elements));
    }
}

}  // namespace aerie
