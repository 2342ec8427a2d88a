// Values to quantised types and back, and the sums that products of those are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/quant_blocks.h"

namespace aerie {

// A sum over the columns of a quantised weight, whatever its type: they are cut into parts of so
// many, the last of which may be shorter. In a part groups of kGroup are added in ascending order,
// and then the parts: so a device may share them out, and every device has the same bits. By the
// names of BlockParts, with an activation group of scale x, a group adds
//   dot * (scale * x)  -  sum * (least * x), where there is a least,
// with whole numbers dot = scales[0] * (q * activations of the first sixteen) + scales[1] * (the
// same of the others) and sum = leasts[0] * (activations) + leasts[1] * (the others). Multiply,
// then subtract, then add: every operation is rounded once, and only those of floats are.
constexpr int kSumPart = 1024;

// Activations: value[i] = scale * q[i]. A group that holds a NaN or an infinity has
// scale NaN. Weights with least values meet the sums of q, of the first sixteen and of the others.
struct BlockI8G32 {
    static constexpr DType kType = DType::I8G32;
    float scale;
    int16_t sums[kGroup / kScaled];
    int8_t q[kGroup];  // -127 .. 127
};

static_assert(sizeof(BlockI8G32) == unit_bytes(DType::I8G32));

// One group of values. Steps beyond f16's range become its largest number; a NaN becomes 0.
BlockQ8_0 pack_q8_0(const float* values);
BlockQ4_0 pack_q4_0(const float* values);
BlockI8G32 pack_i8g32(const float* values);

// `count` values of a type of floats, or in blocks of a quantised one, at any alignment: every
// multiply and subtract as BlockParts has it, so the same bits on every machine.
void unpack(float* values, const std::byte* from, DType type, size_t count);
// Those of a block of so many elements.
void unpack(float* values, const BlockParts& parts, int elements);
// The values of one block.
template <class Block>
void unpack(float* values, const Block& block) {
    unpack(values, reinterpret_cast<const std::byte*>(&block), Block::kType,
           size_t(unit_elements(Block::kType)));
}

}  // namespace aerie
