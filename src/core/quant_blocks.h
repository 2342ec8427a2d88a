// Block layouts of the quantised types of weights, which are GGUF's, and one form for all of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace aerie {

constexpr int kSuperBlock = 8 * kGroup;  // elements of a block of a K type, and of IQ4_XS
constexpr int kScaled = 16;              // elements that share a whole scale

// value[i] = scale * q[i]
struct BlockQ8_0 {
    static constexpr DType kType = DType::Q8_0;
    uint16_t scale;  // f16, as all `scale` and `least` below
    int8_t q[kGroup];
};

// In blocks of 32 the low nibbles are elements 0 .. 15, the high ones 16 .. 31.

// value[i] = scale * (nibble - 8)
struct BlockQ4_0 {
    static constexpr DType kType = DType::Q4_0;
    uint16_t scale;
    uint8_t q[kGroup / 2];
};

// value[i] = scale * nibble + least
struct BlockQ4_1 {
    static constexpr DType kType = DType::Q4_1;
    uint16_t scale, least;
    uint8_t q[kGroup / 2];
};

// value[i] = scale * (q - 16); four bits of q are a nibble, the fifth is bit i of `high`.
struct BlockQ5_0 {
    static constexpr DType kType = DType::Q5_0;
    uint16_t scale;
    uint8_t high[kGroup / 8];
    uint8_t q[kGroup / 2];
};

// value[i] = scale * q + least, with q as in Q5_0.
struct BlockQ5_1 {
    static constexpr DType kType = DType::Q5_1;
    uint16_t scale, least;
    uint8_t high[kGroup / 8];
    uint8_t q[kGroup / 2];
};

// value[i] = scale * kIq4Steps[nibble]
struct BlockIQ4_NL {
    static constexpr DType kType = DType::IQ4_NL;
    uint16_t scale;
    uint8_t q[kGroup / 2];
};

// The values of IQ4_NL's and IQ4_XS's 16 codes, in steps of the scale.
constexpr int8_t kIq4Steps[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};

// Parts of 16: value = (scale * low nibble of its scale) * q - least * high nibble, q of 2 bits.
struct BlockQ2_K {
    static constexpr DType kType = DType::Q2_K;
    uint8_t scales[kSuperBlock / kScaled];
    uint8_t low[kSuperBlock / 4];
    uint16_t scale, least;
};

// Parts of 16: value = (scale * (its scale of 6 bits - 32)) * q; q of 2 bits, less 4 where the bit
// of `high` is 0.
struct BlockQ3_K {
    static constexpr DType kType = DType::Q3_K;
    uint8_t high[kSuperBlock / 8];
    uint8_t low[kSuperBlock / 4];
    uint8_t scales[12];
    uint16_t scale;
};

// Parts of 32: value = (scale * its scale of 6 bits) * q - least * its least of 6 bits, q of 4
// bits.
struct BlockQ4_K {
    static constexpr DType kType = DType::Q4_K;
    uint16_t scale, least;
    uint8_t scales[12];
    uint8_t low[kSuperBlock / 2];
};

// As Q4_K; q has a fifth bit, in `high`.
struct BlockQ5_K {
    static constexpr DType kType = DType::Q5_K;
    uint16_t scale, least;
    uint8_t scales[12];
    uint8_t high[kSuperBlock / 8];
    uint8_t low[kSuperBlock / 2];
};

// Parts of 16: value = (scale * its scale of 8 bits) * (q - 32), q of 4 bits in `low` and 2 in
// `high`.
struct BlockQ6_K {
    static constexpr DType kType = DType::Q6_K;
    uint8_t low[kSuperBlock / 2];
    uint8_t high[kSuperBlock / 4];
    int8_t scales[kSuperBlock / kScaled];
    uint16_t scale;
};

// Parts of 32: value = (scale * (its scale of 6 bits - 32)) * kIq4Steps[nibble]; in a part low
// nibbles come first.
struct BlockIQ4_XS {
    static constexpr DType kType = DType::IQ4_XS;
    uint16_t scale;
    uint16_t scales_high;  // 2 bits a part
    uint8_t scales_low[kSuperBlock / 64];
    uint8_t low[kSuperBlock / 2];
};

// body(Block of the type, not initialised); of a quantised type of weights.
template <class Body>
auto with_block(DType type, const Body& body) {
    switch (type) {
        case DType::Q4_0:
            return body(BlockQ4_0());
        case DType::Q4_1:
            return body(BlockQ4_1());
        case DType::Q5_0:
            return body(BlockQ5_0());
        case DType::Q5_1:
            return body(BlockQ5_1());
        case DType::IQ4_NL:
            return body(BlockIQ4_NL());
        case DType::Q2_K:
            return body(BlockQ2_K());
        case DType::Q3_K:
            return body(BlockQ3_K());
        case DType::Q4_K:
            return body(BlockQ4_K());
        case DType::Q5_K:
            return body(BlockQ5_K());
        case DType::Q6_K:
            return body(BlockQ6_K());
        case DType::IQ4_XS:
            return body(BlockIQ4_XS());
        default:
            return body(BlockQ8_0());
    }
}

// A block of any type, taken apart: of element i, whose sixteen are s = i / kScaled,
//   value = (scale * scales[s]) * q[i] - least * leasts[s]
// with one rounding for each operation, the inner product being exact where scales[s] is 1.
struct BlockParts {
    uint16_t scale = 0, least = 0;
    int8_t scales[kSuperBlock / kScaled] = {};
    int8_t leasts[kSuperBlock / kScaled] = {};
    int8_t q[kSuperBlock] = {};
};
// `block` at any alignment.
BlockParts take_apart(DType type, const std::byte* block);

}  // namespace aerie
