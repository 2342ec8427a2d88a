// Unpacks the bits of blocks, for the CPU and for GPU kernels.
#pragma once

#include "core/quant_blocks.h"

namespace aerie {

// Ors a field of `bits` bits for each element into q, from bit `to` of q on. The elements that
// share a byte are `apart` elements apart, so `apart` neighbours have the same shift.
constexpr void add_bits(BlockParts& parts, const uint8_t* bytes, int bits, int apart, int to,
                        int count) {
    const int together = 8 / bits * apart, mask = (1 << bits) - 1;
    for (int first = 0; first < count; first += apart) {
        const uint8_t* from = bytes + first / together * apart;
        const int shift = first % together / apart * bits;
        for (int i = 0; i < apart; ++i)
            parts.q[first + i] = int8_t(parts.q[first + i] | (from[i] >> shift & mask) << to);
    }
}

constexpr void subtract(BlockParts& parts, int less, int count) {
    for (int i = 0; i < count; ++i) parts.q[i] = int8_t(parts.q[i] - less);
}

constexpr void look_up(BlockParts& parts, int count) {
    for (int i = 0; i < count; ++i) parts.q[i] = kIq4Steps[parts.q[i]];
}

constexpr void nibbles(BlockParts& parts, const uint8_t* bytes) {
    add_bits(parts, bytes, 4, kGroup / 2, 0, kGroup);
}

// The fifth bit of element i is bit i of these four bytes.
constexpr void fifth_bits(BlockParts& parts, const uint8_t* high) {
    for (int i = 0; i < kGroup; ++i)
        parts.q[i] = int8_t(parts.q[i] | (high[i / 8] >> (i % 8) & 1) << 4);
}

// Sets the only scale of a block of 32.
constexpr void one_scale(BlockParts& parts, uint16_t scale) {
    parts.scale = scale;
    parts.scales[0] = parts.scales[1] = 1;
}
// These types add `least`; the common form subtracts it, so its sign is flipped.
constexpr void scale_and_least(BlockParts& parts, uint16_t scale, uint16_t least) {
    one_scale(parts, scale);
    parts.least = uint16_t(least ^ 0x8000);
    parts.leasts[0] = parts.leasts[1] = 1;
}

// Scale j of 16 scales with 6 bits: 8 bytes hold the low nibbles, then 4 bytes hold two more bits
// each.
constexpr int scale_of_16(const uint8_t* scales, int j) {
    const int low = j < 8 ? scales[j] & 15 : scales[j - 8] >> 4;
    return low | (scales[8 + j % 4] >> (j / 4 * 2) & 3) << 4;
}

// Unpacks 8 scales and 8 mins of 6 bits. For the first four parts they are in bytes 0 .. 3 and 4 ..
// 7. For the other parts the low 4 bits are the nibbles of bytes 8 .. 11, and the high 2 bits are
// above the values of the first four.
constexpr void scales_of_8(BlockParts& parts, const uint8_t* scales) {
    for (int j = 0; j < 8; ++j) {
        int scale = scales[j] & 63, least = scales[j + 4] & 63;
        if (j >= 4) {
            scale = (scales[j + 4] & 15) | (scales[j - 4] >> 6) << 4;
            least = (scales[j + 4] >> 4) | (scales[j] >> 6) << 4;
        }
        parts.scales[2 * j] = parts.scales[2 * j + 1] = int8_t(scale);
        parts.leasts[2 * j] = parts.leasts[2 * j + 1] = int8_t(least);
    }
}

constexpr void take_apart(BlockParts& parts, const BlockQ8_0& block) {
    one_scale(parts, block.scale);
    for (int i = 0; i < kGroup; ++i) parts.q[i] = block.q[i];
}

constexpr void take_apart(BlockParts& parts, const BlockQ4_0& block) {
    one_scale(parts, block.scale);
    nibbles(parts, block.q);
    subtract(parts, 8, kGroup);
}

constexpr void take_apart(BlockParts& parts, const BlockQ4_1& block) {
    scale_and_least(parts, block.scale, block.least);
    nibbles(parts, block.q);
}

constexpr void take_apart(BlockParts& parts, const BlockQ5_0& block) {
    one_scale(parts, block.scale);
    nibbles(parts, block.q);
    fifth_bits(parts, block.high);
    subtract(parts, 16, kGroup);
}

constexpr void take_apart(BlockParts& parts, const BlockQ5_1& block) {
    scale_and_least(parts, block.scale, block.least);
    nibbles(parts, block.q);
    fifth_bits(parts, block.high);
}

// The same, but q holds the stored indices into kIq4Steps in the types that have them.
constexpr void take_codes(BlockParts& parts, const BlockIQ4_NL& block) {
    one_scale(parts, block.scale);
    nibbles(parts, block.q);
}

constexpr void take_apart(BlockParts& parts, const BlockIQ4_NL& block) {
    take_codes(parts, block);
    look_up(parts, kGroup);
}

constexpr void take_apart(BlockParts& parts, const BlockQ2_K& block) {
    parts.scale = block.scale;
    parts.least = block.least;
    for (int s = 0; s < kSuperBlock / kScaled; ++s) {
        parts.scales[s] = int8_t(block.scales[s] & 15);
        parts.leasts[s] = int8_t(block.scales[s] >> 4);
    }
    add_bits(parts, block.low, 2, 32, 0, kSuperBlock);
}

constexpr void take_apart(BlockParts& parts, const BlockQ3_K& block) {
    parts.scale = block.scale;
    for (int s = 0; s < kSuperBlock / kScaled; ++s)
        parts.scales[s] = int8_t(scale_of_16(block.scales, s) - 32);
    add_bits(parts, block.low, 2, 32, 0, kSuperBlock);
    add_bits(parts, block.high, 1, 32, 2, kSuperBlock);
    subtract(parts, 4, kSuperBlock);
}

constexpr void take_apart(BlockParts& parts, const BlockQ4_K& block) {
    parts.scale = block.scale;
    parts.least = block.least;
    scales_of_8(parts, block.scales);
    add_bits(parts, block.low, 4, 32, 0, kSuperBlock);
}

constexpr void take_apart(BlockParts& parts, const BlockQ5_K& block) {
    parts.scale = block.scale;
    parts.least = block.least;
    scales_of_8(parts, block.scales);
    add_bits(parts, block.low, 4, 32, 0, kSuperBlock);
    add_bits(parts, block.high, 1, 32, 4, kSuperBlock);
}

// The low nibbles are 64 elements apart, in halves of 128; the two high bits are 32 apart.
constexpr void take_apart(BlockParts& parts, const BlockQ6_K& block) {
    parts.scale = block.scale;
    for (int s = 0; s < kSuperBlock / kScaled; ++s) parts.scales[s] = block.scales[s];
    add_bits(parts, block.low, 4, 64, 0, kSuperBlock);
    add_bits(parts, block.high, 2, 32, 4, kSuperBlock);
    subtract(parts, 32, kSuperBlock);
}

constexpr void take_codes(BlockParts& parts, const BlockIQ4_XS& block) {
    parts.scale = block.scale;
    for (int j = 0; j < kSuperBlock / kGroup; ++j) {
        const int low = block.scales_low[j / 2] >> (j % 2 * 4) & 15;
        const int high = block.scales_high >> (2 * j) & 3;
        parts.scales[2 * j] = parts.scales[2 * j + 1] = int8_t((low | high << 4) - 32);
    }
    add_bits(parts, block.low, 4, kGroup / 2, 0, kSuperBlock);
}

constexpr void take_apart(BlockParts& parts, const BlockIQ4_XS& block) {
    take_codes(parts, block);
    look_up(parts, kSuperBlock);
}

template <class Block>
constexpr void take_codes(BlockParts& parts, const Block& block) {
    take_apart(parts, block);
}

}  // namespace aerie
