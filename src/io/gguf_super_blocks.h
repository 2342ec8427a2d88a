// The block types of GGUF with 256 elements: parts of 16 or 32 of them have scales of their own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/quant.h"  // Q6_K

namespace aerie {

constexpr int kSuperBlock = 256;

// The values of IQ4_NL's and IQ4_XS's 16 codes, in steps of the scale.
inline constexpr int8_t kIq4Steps[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};

// Parts of 16: value = (scale * low nibble of its scale) * q - least * high nibble, q of 2 bits.
struct BlockQ2_K {
    static constexpr int kElements = kSuperBlock;
    uint8_t scales[kSuperBlock / 16];
    uint8_t low[kSuperBlock / 4];
    uint16_t scale, least;  // f16
};

// Parts of 16: value = (scale * (its scale of 6 bits - 32)) * q; q of 2 bits, less 4 where the bit
// of `high` is 0.
struct BlockQ3_K {
    static constexpr int kElements = kSuperBlock;
    uint8_t high[kSuperBlock / 8];
    uint8_t low[kSuperBlock / 4];
    uint8_t scales[12];
    uint16_t scale;  // f16
};

// Parts of 32: value = (scale * its scale of 6 bits) * q - least * its least of 6 bits, q of 4
// bits.
struct BlockQ4_K {
    static constexpr int kElements = kSuperBlock;
    uint16_t scale, least;  // f16
    uint8_t scales[12];
    uint8_t low[kSuperBlock / 2];
};

// As Q4_K; q has a fifth bit, in `high`.
struct BlockQ5_K {
    static constexpr int kElements = kSuperBlock;
    uint16_t scale, least;  // f16
    uint8_t scales[12];
    uint8_t high[kSuperBlock / 8];
    uint8_t low[kSuperBlock / 2];
};

// Parts of 32: value = (scale * (its scale of 6 bits - 32)) * kIq4Steps[nibble]; in a part low
// nibbles come first.
struct BlockIQ4_XS {
    static constexpr int kElements = kSuperBlock;
    uint16_t scale;        // f16
    uint16_t scales_high;  // 2 bits a part
    uint8_t scales_low[kSuperBlock / 64];
    uint8_t low[kSuperBlock / 2];
};

static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144 &&
              sizeof(BlockQ5_K) == 176 && sizeof(BlockIQ4_XS) == 136);

void unpack(float* out, const BlockQ2_K& block);
void unpack(float* out, const BlockQ3_K& block);
void unpack(float* out, const BlockQ4_K& block);
void unpack(float* out, const BlockQ5_K& block);
void unpack(float* out, const BlockIQ4_XS& block);

}  // namespace aerie
