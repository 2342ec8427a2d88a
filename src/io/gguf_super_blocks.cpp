// Where the bits of an element lie in blocks of 256, and in which order they are multiplied.
#include "io/gguf_super_blocks.h"

#include "core/dtype.h"

namespace aerie {
namespace {

// Two bits of element i: the four of a byte are elements that are 32 apart.
int two_bits(const uint8_t* bytes, int i) {
    return bytes[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
}

// Four bits of element i: the two of a byte are elements that are `apart` apart.
int four_bits(const uint8_t* bytes, int i, int apart) {
    return bytes[i / (2 * apart) * apart + i % apart] >> (i / apart % 2 * 4) & 15;
}

// One bit of element i: the eight of a byte are elements that are 32 apart.
int one_bit(const uint8_t* bytes, int i) {
    return bytes[i % 32] >> (i / 32) & 1;
}

// The j-th of 16 scales of 6 bits: 8 bytes of low nibbles, then 4 bytes of two more bits each.
int scale_of_16(const uint8_t* scales, int j) {
    const int low = j < 8 ? scales[j] & 15 : scales[j - 8] >> 4;
    return low | (scales[8 + j % 4] >> (j / 4 * 2) & 3) << 4;
}

// The j-th of 8 scales and of 8 least values, 6 bits each. Those of the first four parts lie in
// bytes 0 .. 3 and 4 .. 7; of the others the low bits in the nibbles of bytes 8 .. 11, and the high
// ones above those of the first four.
struct ScaleAndLeast {
    int scale, least;
};
ScaleAndLeast scale_of_8(const uint8_t* scales, int j) {
    if (j < 4) return {scales[j] & 63, scales[j + 4] & 63};
    return {(scales[j + 4] & 15) | (scales[j - 4] >> 6) << 4,
            (scales[j + 4] >> 4) | (scales[j] >> 6) << 4};
}

}  // namespace

void unpack(float* out, const BlockQ2_K& block) {
    const float scale = f16_to_f32(block.scale), least = f16_to_f32(block.least);
    for (int i = 0; i < kSuperBlock; ++i) {
        const uint8_t of_part = block.scales[i / 16];
        out[i] = scale * float(of_part & 15) * float(two_bits(block.low, i)) -
                 least * float(of_part >> 4);
    }
}

void unpack(float* out, const BlockQ3_K& block) {
    const float scale = f16_to_f32(block.scale);
    for (int i = 0; i < kSuperBlock; ++i) {
        const float step = scale * float(scale_of_16(block.scales, i / 16) - 32);
        out[i] = step * float(two_bits(block.low, i) - (one_bit(block.high, i) ? 0 : 4));
    }
}

void unpack(float* out, const BlockQ4_K& block) {
    const float scale = f16_to_f32(block.scale), least = f16_to_f32(block.least);
    for (int i = 0; i < kSuperBlock; ++i) {
        const ScaleAndLeast of_part = scale_of_8(block.scales, i / 32);
        out[i] = scale * float(of_part.scale) * float(four_bits(block.low, i, 32)) -
                 least * float(of_part.least);
    }
}

void unpack(float* out, const BlockQ5_K& block) {
    const float scale = f16_to_f32(block.scale), least = f16_to_f32(block.least);
    for (int i = 0; i < kSuperBlock; ++i) {
        const ScaleAndLeast of_part = scale_of_8(block.scales, i / 32);
        const int q = four_bits(block.low, i, 32) | one_bit(block.high, i) << 4;
        out[i] = scale * float(of_part.scale) * float(q) - least * float(of_part.least);
    }
}

void unpack(float* out, const BlockQ6_K& block) {
    const float scale = f16_to_f32(block.scale);
    for (int i = 0; i < kSuperBlock; ++i) {
        const int q = four_bits(block.low, i, 64) | two_bits(block.high, i) << 4;
        out[i] = scale * float(block.scales[i / 16]) * float(q - 32);
    }
}

void unpack(float* out, const BlockIQ4_XS& block) {
    const float scale = f16_to_f32(block.scale);
    for (int i = 0; i < kSuperBlock; ++i) {
        const int part = i / 32;
        const int low = block.scales_low[part / 2] >> (part % 2 * 4) & 15;
        const int high = block.scales_high >> (2 * part) & 3;
        const float step = scale * float((low | high << 4) - 32);
        out[i] = step * float(kIq4Steps[four_bits(block.low, i, 16)]);
    }
}

}  // namespace aerie
