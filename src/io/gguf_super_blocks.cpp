// Where the bits of an element lie in blocks of 256, and in which order they are multiplied.
#include "io/gguf_super_blocks.h"

#include "core/dtype.h"

namespace aerie {
namespace {

// Below, i counts the elements of a part from `begin` on, in which no shift changes.

// Two bits each: the four of a byte are elements that are 32 apart.
struct TwoBits {
    TwoBits(const uint8_t* all, int begin)
        : bytes(all + begin / 128 * 32 + begin % 32), shift(begin / 32 % 4 * 2) {}
    int operator[](int i) const { return bytes[i] >> shift & 3; }
    const uint8_t* bytes;
    int shift;
};

// Four bits each: the two of a byte are elements that are `apart` apart.
struct FourBits {
    FourBits(const uint8_t* all, int begin, int apart)
        : bytes(all + begin / (2 * apart) * apart + begin % apart), shift(begin / apart % 2 * 4) {}
    int operator[](int i) const { return bytes[i] >> shift & 15; }
    const uint8_t* bytes;
    int shift;
};

// One bit each: the eight of a byte are elements that are 32 apart.
struct OneBit {
    OneBit(const uint8_t* all, int begin) : bytes(all + begin % 32), shift(begin / 32) {}
    int operator[](int i) const { return bytes[i] >> shift & 1; }
    const uint8_t* bytes;
    int shift;
};

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
    for (int begin = 0; begin < kSuperBlock; begin += 16) {
        const uint8_t of_part = block.scales[begin / 16];
        const float step = scale * float(of_part & 15), less = least * float(of_part >> 4);
        const TwoBits q(block.low, begin);
        for (int i = 0; i < 16; ++i) out[begin + i] = step * float(q[i]) - less;
    }
}

void unpack(float* out, const BlockQ3_K& block) {
    const float scale = f16_to_f32(block.scale);
    for (int begin = 0; begin < kSuperBlock; begin += 16) {
        const float step = scale * float(scale_of_16(block.scales, begin / 16) - 32);
        const TwoBits low(block.low, begin);
        const OneBit high(block.high, begin);
        for (int i = 0; i < 16; ++i) out[begin + i] = step * float((low[i] | high[i] << 2) - 4);
    }
}

void unpack(float* out, const BlockQ4_K& block) {
    const float scale = f16_to_f32(block.scale), least = f16_to_f32(block.least);
    for (int begin = 0; begin < kSuperBlock; begin += 32) {
        const ScaleAndLeast of_part = scale_of_8(block.scales, begin / 32);
        const float step = scale * float(of_part.scale), less = least * float(of_part.least);
        const FourBits q(block.low, begin, 32);
        for (int i = 0; i < 32; ++i) out[begin + i] = step * float(q[i]) - less;
    }
}

void unpack(float* out, const BlockQ5_K& block) {
    const float scale = f16_to_f32(block.scale), least = f16_to_f32(block.least);
    for (int begin = 0; begin < kSuperBlock; begin += 32) {
        const ScaleAndLeast of_part = scale_of_8(block.scales, begin / 32);
        const float step = scale * float(of_part.scale), less = least * float(of_part.least);
        const FourBits low(block.low, begin, 32);
        const OneBit high(block.high, begin);
        for (int i = 0; i < 32; ++i) out[begin + i] = step * float(low[i] | high[i] << 4) - less;
    }
}

void unpack(float* out, const BlockIQ4_XS& block) {
    const float scale = f16_to_f32(block.scale);
    for (int begin = 0; begin < kSuperBlock; begin += 16) {
        const int part = begin / 32;
        const int low = block.scales_low[part / 2] >> (part % 2 * 4) & 15;
        const int high = block.scales_high >> (2 * part) & 3;
        const float step = scale * float((low | high << 4) - 32);
        const FourBits q(block.low, begin, 16);
        for (int i = 0; i < 16; ++i) out[begin + i] = step * float(kIq4Steps[q[i]]);
    }
}

}  // namespace aerie
