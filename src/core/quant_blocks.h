// Block layouts of the quantised weight types, as in GGUF, and one common form for all of them.
// `least` is a block's min, or its negative in the types with blocks of 32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace aerie {

constexpr int kSuperBlock = 8 * kGroup;  // elements of a block of a K type, and of IQ4_XS
constexpr int kScaled = 16;              // elements that share an integer scale

// value[i] = scale * q[i]
struct BlockQ8_0 {
    static constexpr DType kType = DType::Q8_0;
    uint16_t scale;  // f16, like every `scale` and `least` below
    int8_t q[kGroup];
};

// In blocks of 32, the low nibbles are elements 0 .. 15, the high nibbles 16 .. 31.

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

// value[i] = scale * (q - 16); the low four bits of q are a nibble, the fifth is bit i of `high`.
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

// value[i] = scale * kIq4Steps[nibble], as in IQ4_XS.
struct BlockIQ4_NL {
    static constexpr DType kType = DType::IQ4_NL;
    uint16_t scale;
    uint8_t q[kGroup / 2];
};

// The values of the 16 codes of IQ4_NL and IQ4_XS, in units of the scale.
constexpr int8_t kIq4Steps[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};

// Parts of 16: value = (scale * low nibble of the part's byte in `scales`) * q - least * high
// nibble; q has 2 bits.
struct BlockQ2_K {
    static constexpr DType kType = DType::Q2_K;
    uint8_t scales[kSuperBlock / kScaled];
    uint8_t low[kSuperBlock / 4];
    uint16_t scale, least;
};

// Parts of 16: value = (scale * (the part's scale of 6 bits - 32)) * q; q has 2 bits, minus 4 if
// the element's bit in `high` is 0.
struct BlockQ3_K {
    static constexpr DType kType = DType::Q3_K;
    uint8_t high[kSuperBlock / 8];
    uint8_t low[kSuperBlock / 4];
    uint8_t scales[12];
    uint16_t scale;
};

// Parts of 32: value = (scale * the part's scale of 6 bits) * q - least * the part's min of 6 bits;
// q has 4 bits.
struct BlockQ4_K {
    static constexpr DType kType = DType::Q4_K;
    uint16_t scale, least;
    uint8_t scales[12];
    uint8_t low[kSuperBlock / 2];
};

// Like Q4_K, with a fifth bit of q in `high`.
struct BlockQ5_K {
    static constexpr DType kType = DType::Q5_K;
    uint16_t scale, least;
    uint8_t scales[12];
    uint8_t high[kSuperBlock / 8];
    uint8_t low[kSuperBlock / 2];
};

// Parts of 16: value = (scale * the part's scale of 8 bits) * (q - 32); q has 4 bits in `low` and 2
// in `high`.
struct BlockQ6_K {
    static constexpr DType kType = DType::Q6_K;
    uint8_t low[kSuperBlock / 2];
    uint8_t high[kSuperBlock / 4];
    int8_t scales[kSuperBlock / kScaled];
    uint16_t scale;
};

// Parts of 32: value = (scale * (the part's scale of 6 bits - 32)) * kIq4Steps[nibble]. Within a
// part the low nibbles come first.
struct BlockIQ4_XS {
    static constexpr DType kType = DType::IQ4_XS;
    uint16_t scale;
    uint16_t scales_high;  // 2 bits for each part
    uint8_t scales_low[kSuperBlock / 64];
    uint8_t low[kSuperBlock / 2];
};

// Calls body(block) with a default block of this quantised weight type.
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

// The common form of a block of any type. Element i, with s = i / kScaled, has the value
//   value = (scale * scales[s]) * q[i] - least * leasts[s]
// with one rounding for each operation; the inner product is exact if scales[s] is 1.
struct BlockParts {
    uint16_t scale = 0, least = 0;
    int8_t scales[kSuperBlock / kScaled] = {};
    int8_t leasts[kSuperBlock / kScaled] = {};
    int8_t q[kSuperBlock] = {};
};
// Takes apart the block, at any alignment.
BlockParts take_apart(DType type, const std::byte* block);

}  // namespace aerie
