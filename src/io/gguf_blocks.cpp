// The table of GGUF's types, and the values of those whose blocks have 1 or 32 elements.
#include "io/gguf_blocks.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/error.h"
#include "core/quant.h"
#include "io/gguf_super_blocks.h"

namespace aerie {
namespace {

struct PlainF32 {
    static constexpr int kElements = 1;
    float value;
};

struct PlainF16 {
    static constexpr int kElements = 1;
    uint16_t bits;
};

struct PlainBF16 {
    static constexpr int kElements = 1;
    uint16_t bits;
};

// value[i] = scale * nibble + least; nibbles as in Q4_0.
struct BlockQ4_1 {
    static constexpr int kElements = kGroup;
    uint16_t scale, least;  // f16
    uint8_t low[kGroup / 2];
};

// value[i] = scale * (q - 16); four bits of q are a nibble as in Q4_0, the fifth is bit i of
// `high`.
struct BlockQ5_0 {
    static constexpr int kElements = kGroup;
    uint16_t scale;  // f16
    uint8_t high[kGroup / 8];
    uint8_t low[kGroup / 2];
};

// value[i] = scale * q + least, with q as in Q5_0.
struct BlockQ5_1 {
    static constexpr int kElements = kGroup;
    uint16_t scale, least;  // f16
    uint8_t high[kGroup / 8];
    uint8_t low[kGroup / 2];
};

// value[i] = scale * kSteps[nibble]; nibbles as in Q4_0.
struct BlockIQ4_NL {
    static constexpr int kElements = kGroup;
    uint16_t scale;  // f16
    uint8_t low[kGroup / 2];
};

static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 &&
              sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24 && sizeof(BlockIQ4_NL) == 18);

constexpr int kHalf = kGroup / 2;

// Bit i, as the fifth one.
int fifth_bit(const uint8_t* high, int i) {
    return (high[i / 8] >> (i % 8) & 1) << 4;
}

void unpack(float* out, const PlainF32& block) {
    *out = block.value;
}
void unpack(float* out, const PlainF16& block) {
    *out = f16_to_f32(block.bits);
}
void unpack(float* out, const PlainBF16& block) {
    *out = bf16_to_f32(block.bits);
}

// Below, low nibbles are elements 0 .. 15, high ones 16 .. 31.
void unpack(float* out, const BlockQ4_1& block) {
    const float scale = f16_to_f32(block.scale), least = f16_to_f32(block.least);
    for (int i = 0; i < kHalf; ++i) {
        out[i] = scale * float(block.low[i] & 15) + least;
        out[i + kHalf] = scale * float(block.low[i] >> 4) + least;
    }
}

void unpack(float* out, const BlockQ5_0& block) {
    const float scale = f16_to_f32(block.scale);
    for (int i = 0; i < kHalf; ++i) {
        const int first = (block.low[i] & 15) | fifth_bit(block.high, i);
        const int second = block.low[i] >> 4 | fifth_bit(block.high, i + kHalf);
        out[i] = scale * float(first - 16);
        out[i + kHalf] = scale * float(second - 16);
    }
}

void unpack(float* out, const BlockQ5_1& block) {
    const float scale = f16_to_f32(block.scale), least = f16_to_f32(block.least);
    for (int i = 0; i < kHalf; ++i) {
        const int first = (block.low[i] & 15) | fifth_bit(block.high, i);
        const int second = block.low[i] >> 4 | fifth_bit(block.high, i + kHalf);
        out[i] = scale * float(first) + least;
        out[i + kHalf] = scale * float(second) + least;
    }
}

void unpack(float* out, const BlockIQ4_NL& block) {
    const float scale = f16_to_f32(block.scale);
    for (int i = 0; i < kHalf; ++i) {
        out[i] = scale * float(kIq4Steps[block.low[i] & 15]);
        out[i + kHalf] = scale * float(kIq4Steps[block.low[i] >> 4]);
    }
}

template <typename Block>
constexpr GgmlTypeRow weights(GgmlType type, const char* name) {
    return {type, name, size_t(Block::kElements), sizeof(Block), unpack_blocks<Block>};
}
constexpr GgmlTypeRow plain(GgmlType type, const char* name, size_t bytes) {
    return {type, name, 1, bytes, nullptr};
}
constexpr GgmlTypeRow unread(uint32_t number, const char* name) {
    return {GgmlType(number), name, 0, 0, nullptr};
}

constexpr std::array kTypes{
    weights<PlainF32>(GgmlType::F32, "F32"),
    weights<PlainF16>(GgmlType::F16, "F16"),
    weights<PlainBF16>(GgmlType::BF16, "BF16"),
    weights<BlockQ8_0>(GgmlType::Q8_0, "Q8_0"),
    weights<BlockQ4_0>(GgmlType::Q4_0, "Q4_0"),
    weights<BlockQ4_1>(GgmlType::Q4_1, "Q4_1"),
    weights<BlockQ5_0>(GgmlType::Q5_0, "Q5_0"),
    weights<BlockQ5_1>(GgmlType::Q5_1, "Q5_1"),
    weights<BlockQ2_K>(GgmlType::Q2_K, "Q2_K"),
    weights<BlockQ3_K>(GgmlType::Q3_K, "Q3_K"),
    weights<BlockQ4_K>(GgmlType::Q4_K, "Q4_K"),
    weights<BlockQ5_K>(GgmlType::Q5_K, "Q5_K"),
    weights<BlockQ6_K>(GgmlType::Q6_K, "Q6_K"),
    weights<BlockIQ4_NL>(GgmlType::IQ4_NL, "IQ4_NL"),
    weights<BlockIQ4_XS>(GgmlType::IQ4_XS, "IQ4_XS"),
    plain(GgmlType::I8, "I8", 1),
    plain(GgmlType::I16, "I16", 2),
    plain(GgmlType::I32, "I32", 4),
    plain(GgmlType::I64, "I64", 8),
    plain(GgmlType::F64, "F64", 8),
    unread(9, "Q8_1"),
    unread(15, "Q8_K"),
    unread(16, "IQ2_XXS"),
    unread(17, "IQ2_XS"),
    unread(18, "IQ3_XXS"),
    unread(19, "IQ1_S"),
    unread(21, "IQ3_S"),
    unread(22, "IQ2_S"),
    unread(29, "IQ1_M"),
    unread(34, "TQ1_0"),
    unread(35, "TQ2_0"),
    unread(39, "MXFP4"),
};

}  // namespace

const GgmlTypeRow* find_ggml_type(uint32_t number) {
    const auto row = std::find_if(kTypes.begin(), kTypes.end(), [&](const GgmlTypeRow& each) {
        return uint32_t(each.type) == number;
    });
    return row == kTypes.end() ? nullptr : &*row;
}

const GgmlTypeRow& row_of(GgmlType type) {
    const GgmlTypeRow* row = find_ggml_type(uint32_t(type));
    if (!row) throw Error("GGUF type " + std::to_string(uint32_t(type)) + " is unknown");
    return *row;
}

const char* name(GgmlType type) {
    return row_of(type).name;
}

size_t checked_bytes(size_t elements, GgmlType type, const std::string& what) {
    const GgmlTypeRow& row = row_of(type);
    if (row.block_bytes == 0) throw Error(what + ": type " + row.name + " is not supported");
    if (elements % row.block_elements != 0) {
        throw Error(what + ": " + std::to_string(elements) + " elements are no whole blocks of " +
                    row.name + ", which have " + std::to_string(row.block_elements));
    }
    size_t bytes = 0;
    if (__builtin_mul_overflow(elements / row.block_elements, row.block_bytes, &bytes))
        throw Error(what + ": " + std::to_string(elements) + " elements overflow");
    return bytes;
}

void decode(GgmlType type, std::span<const std::byte> blocks, std::span<float> out,
            const std::string& what) {
    const GgmlTypeRow& row = row_of(type);
    if (!row.decode) throw Error(what + ": type " + row.name + " holds no weights that we read");
    const size_t expected = checked_bytes(out.size(), type, what);
    if (blocks.size() != expected) {
        throw Error(what + ": " + std::to_string(blocks.size()) + " bytes, " +
                    std::to_string(out.size()) + " elements of " + row.name + " take " +
                    std::to_string(expected));
    }
    row.decode(blocks.data(), out.size() / row.block_elements, out.data());
}

}  // namespace aerie
