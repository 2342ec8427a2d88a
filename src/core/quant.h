// Block layouts of the quantised types, with scalar pack and unpack. Those of weights are GGUF's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/dtype.h"

namespace aerie {

// A sum over the columns of a quantised weight, whatever its type: they are cut into parts of so
// many, the last of which may be shorter. In a part groups of kGroup are added in ascending order,
// and then the parts: so a device may share them out, and every device has the same bits. A group
// adds dot * (weight scale * activation scale), its dot an exact integer; multiply, then add. In
// Q6_K the dot is that of both halves, each times its own whole scale.
constexpr int kSumPart = 1024;

// value[i] = scale * q[i]
struct BlockQ8_0 {
    static constexpr DType kType = DType::Q8_0;
    static constexpr int kElements = kGroup;
    uint16_t scale;  // f16
    int8_t q[kGroup];
};

// value[i] = scale * (nibble - 8); the low nibbles are elements 0 .. 15, the high ones 16 .. 31.
struct BlockQ4_0 {
    static constexpr DType kType = DType::Q4_0;
    static constexpr int kElements = kGroup;
    uint16_t scale;  // f16
    uint8_t q[kGroup / 2];
};

// value[i] = scale * scales[i / 16] * q[i]: 256 values of 6 bits, of which `low` has four and
// `high` two. unpack_steps says where.
struct BlockQ6_K {
    static constexpr DType kType = DType::Q6_K;
    static constexpr int kElements = unit_elements(DType::Q6_K);
    static constexpr int kScaled = 16;  // elements of a scale
    uint8_t low[kElements / 2];
    uint8_t high[kElements / 4];
    int8_t scales[kElements / kScaled];
    uint16_t scale;  // f16
};

// Activations: value[i] = scale * q[i]. A group that holds a NaN or an infinity has
// scale NaN.
struct BlockI8G32 {
    static constexpr DType kType = DType::I8G32;
    static constexpr int kElements = kGroup;
    float scale;
    int8_t q[kGroup];  // -127 .. 127
};

template <class Block>
constexpr bool kHasItsSize =
    sizeof(Block) == unit_bytes(Block::kType) && Block::kElements == unit_elements(Block::kType);
static_assert(kHasItsSize<BlockQ8_0> && kHasItsSize<BlockQ4_0> && kHasItsSize<BlockQ6_K> &&
              kHasItsSize<BlockI8G32>);

// One group of values. Steps beyond f16's range become its largest number; a NaN becomes 0.
BlockQ8_0 pack_q8_0(const float* values);
BlockQ4_0 pack_q4_0(const float* values);
BlockI8G32 pack_i8g32(const float* values);

void unpack(float* values, const BlockQ8_0& block);
void unpack(float* values, const BlockQ4_0& block);
void unpack(float* values, const BlockQ6_K& block);
void unpack(float* values, const BlockI8G32& block);

// The values of `count` blocks, at any alignment.
template <class Block>
void unpack_blocks(const std::byte* blocks, size_t count, float* values) {
    for (size_t i = 0; i < count; ++i) {
        Block block;
        std::memcpy(&block, blocks + i * sizeof(Block), sizeof(Block));
        unpack(values + i * size_t(Block::kElements), block);
    }
}

// `count` values in blocks of a quantised type, at any alignment.
void unpack(float* values, const std::byte* blocks, DType type, int count);

// q[256] of the block, -32 .. 31.
void unpack_steps(int8_t* q, const BlockQ6_K& block);

}  // namespace aerie
