// Conversion between floats and quantised types, and the definition of sums over their products.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/quant_blocks.h"

namespace aerie {

// The order of a sum over the columns of a quantised weight, for every type. The columns are cut
// into parts of kSumPart; the last part may be shorter. In a part, groups of kGroup are added in
// ascending order; then the parts are added in ascending order. So a device may distribute the
// parts, and all devices have the same bits. With the names of BlockParts, and an activation group
// of scale x, a group adds
//   dot * (scale * x)  -  sum * (least * x)
// The second term exists only in types with a min. Both factors are integers:
//   dot = scales[0] * (q * first sixteen activations) + scales[1] * (q * the other sixteen)
//   sum = leasts[0] * (sum of the first sixteen) + leasts[1] * (sum of the other sixteen)
// Multiply, then subtract, then add: each float operation is rounded once; integers are exact.
constexpr int kSumPart = 1024;

// A group of activations: value[i] = scale * q[i]. A group that contains a NaN or an infinity has
// scale NaN. `sums` holds the sums of q over the first and the other sixteen, which are multiplied
// with the mins of weights.
struct BlockI8G32 {
    static constexpr DType kType = DType::I8G32;
    float scale;
    int16_t sums[kGroup / kScaled];
    int8_t q[kGroup];  // -127 .. 127
};

static_assert(sizeof(BlockI8G32) == unit_bytes(DType::I8G32));

// Quantise one group of values. A scale beyond f16's range becomes its largest number; a NaN
// becomes 0.
BlockQ8_0 pack_q8_0(const float* values);
BlockQ4_0 pack_q4_0(const float* values);
BlockI8G32 pack_i8g32(const float* values);

// Converts `count` values of a float type, or of whole blocks of a quantised type, at any
// alignment. Every multiply and subtract is that of BlockParts, so all machines have the same bits.
void unpack(float* values, const std::byte* from, DType type, size_t count);
// Converts a block of this many elements.
void unpack(float* values, const BlockParts& parts, int elements);
// Converts one block.
template <class Block>
void unpack(float* values, const Block& block) {
    unpack(values, reinterpret_cast<const std::byte*>(&block), Block::kType,
           size_t(unit_elements(Block::kType)));
}

}  // namespace aerie
